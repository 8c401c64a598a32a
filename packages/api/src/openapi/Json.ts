/** The document while it is made: JSON that the library's types describe only in part. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
export type Json = Record<string, any>
