/**
 * How long a test waits for a condition or for a response, in milliseconds. Long enough for a machine that is busy with
 * other work: only a failing test waits until the end.
 */
export const patience = 100_000

/**
 * Waits for a condition. Polls at growing intervals, a seventh of the elapsed time, so that long waits leave the
 * machine to other work. Tests never wait for a fixed time.
 */
export const eventually = async <A>(
  read: () => Promise<A>,
  holds: (value: A) => boolean,
  seconds = patience / 1000,
): Promise<A> => {
  const began = Date.now()
  while (true) {
    const value = await read()
    if (holds(value)) return value
    const elapsed = Date.now() - began
    if (elapsed > seconds * 1000)
      throw new Error(`did not come about in ${seconds} s; last seen: ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(elapsed / 7, 10), 200)))
  }
}
