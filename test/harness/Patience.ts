/**
 * How long a test waits for a condition or for a response, in milliseconds. Long enough for a machine that is busy with
 * other work: only a failing test waits until the end.
 */
export const patience = 100_000
