declare module "libmime" {
  class Libmime {
    /** Parses a structured header field into its value and its parameters, joining RFC 2231 continuations. */
    parseHeaderValue(value: string): { value: string; params: Record<string, string> }
    /** Decodes a parameter; called once for each name. */
    decodeWord(charset: string, encoding: string, text: string): string
    decodeWords(text: string): string
  }
  const libmime: {
    readonly Libmime: typeof Libmime
    /** Folds a field at white space to lines of about `length` characters. */
    readonly foldLines: (text: string, length: number) => string
  }
  export default libmime
}
declare module "mailauth/lib/dkim/dkim-verifier.js" {
  import type { ARCData } from "mailauth"
  export interface HeaderLine {
    /** The name in lower case. */
    readonly key: string
    readonly casedKey: string
    /** The field without its final line break. */
    readonly line: Buffer
  }
  export interface DkimStatus {
    result: string
    comment?: string | false
  }
  export interface DkimResult {
    readonly id?: string
    readonly signingDomain?: string
    readonly status: DkimStatus
    /** The DNS record of the key. */
    readonly rr?: string
    /** The names of the covered fields, joined by colons. */
    readonly signingHeaders?: { readonly keys: string }
    readonly canonBodyLength?: number
    readonly canonBodyLengthTotal?: number
    readonly canonBodyLengthLimited?: boolean
  }
  export interface BodyHasher {
    hash: string
    readonly canonicalizedLength: number
    readonly bodyHashedBytes: number
    readonly byteLength: number
    readonly digest: (encoding: "base64") => string
    readonly update: (chunk: Buffer) => void
    readonly setContentType: (value: object) => void
    readonly getMimeStructureStart: () => number
  }
  export class DkimVerifier {
    constructor(options: {
      readonly resolver: (name: string, type: string) => Promise<Array<string> | Array<Array<string>>>
      readonly strict: boolean
    })
    headers: { readonly parsed: ReadonlyArray<HeaderLine> }
    readonly arc: ARCData
    readonly results: ReadonlyArray<DkimResult>
    readonly bodyHashes: Map<string, BodyHasher>
    messageHeaders(headers: { readonly parsed: ReadonlyArray<HeaderLine> }): Promise<void>
    /** Returns the key of the hash in `bodyHashes`. */
    addBodyHash(canonicalization: string, algorithm: string, limit: number | ""): string
    finalChunk(): Promise<void>
  }
}
declare module "mailauth/lib/dkim/header/index.js" {
  import type { HeaderLine } from "mailauth/lib/dkim/dkim-verifier.js"
  /** Returns the bytes to sign, and the tags of the signature field except `b`. */
  export const generateCanonicalizedHeader: (
    type: "DKIM",
    lines: { readonly headers: ReadonlyArray<HeaderLine>; readonly keys: string },
    options: {
      readonly signingDomain: string
      readonly selector: string
      readonly algorithm: string
      readonly canonicalization: string
      readonly bodyHash: string
      /** In seconds. */
      readonly timestamp: number
      readonly expiration: false
    },
  ) => { readonly canonicalizedHeader: Buffer; readonly dkimHeaderOpts: Readonly<Record<string, string | number>> }
}
declare module "mailauth/lib/tools.js" {
  /** Returns a field in relaxed canonical form (RFC 6376 section 3.4.2), followed by `suffix`. */
  export const formatRelaxedLine: (line: Buffer, suffix: string) => Buffer
  /** Returns a folded signature field without its final line break. */
  export const formatSignatureHeaderLine: (
    type: "DKIM",
    values: Readonly<Record<string, string | number>>,
    folded: boolean,
  ) => string
  /** Formats a method's result for `Authentication-Results`. */
  export const formatAuthHeaderRow: (
    method: string,
    status: { readonly result: string; readonly comment?: string | false },
    options?: { readonly strict?: boolean },
  ) => string
}
