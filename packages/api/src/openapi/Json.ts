/** The document during its construction: JSON that the library's types describe only partly. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
export type Json = Record<string, any>
