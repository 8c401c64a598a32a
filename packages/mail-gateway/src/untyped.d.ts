declare module "libmime" {
  const libmime: {
    /** A structured header field: its value and its parameters, RFC 2231 continuations joined. */
    readonly parseHeaderValue: (value: string) => { value: string; params: Record<string, string> }
    /** RFC 2047 encoded words. */
    readonly decodeWords: (text: string) => string
  }
  export default libmime
}
declare module "libmime/lib/charset.js" {
  const charset: {
    /** Text of bytes; throws on an unknown character set. */
    readonly decode: (bytes: Buffer, charset: string) => string
  }
  export default charset
}
declare module "libqp" {
  const libqp: { readonly decode: (text: string) => Uint8Array }
  export default libqp
}
