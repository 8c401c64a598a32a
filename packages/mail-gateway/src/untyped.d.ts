declare module "libmime" {
  class Libmime {
    /** A structured header field: its value and its parameters, RFC 2231 continuations joined. */
    parseHeaderValue(value: string): { value: string; params: Record<string, string> }
    /** What the parameters of such a field are decoded by, once for each name. */
    decodeWord(charset: string, encoding: string, text: string): string
    decodeWords(text: string): string
  }
  const libmime: {
    readonly Libmime: typeof Libmime
    /** Folds a field at white space, to lines of about so many characters. */
    readonly foldLines: (text: string, length: number) => string
  }
  export default libmime
}
declare module "mailauth/lib/dkim/dkim-verifier.js" {
  import type { ARCData } from "mailauth"
  export interface HeaderLine {
    /** Lower case. */
    readonly key: string
    readonly casedKey: string
    /** Without the line break at its end. */
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
    /** The key's record. */
    readonly rr?: string
    /** Names of the fields that were covered, joined by colons. */
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
    /** The key under which the hash stands in `bodyHashes`. */
    addBodyHash(canonicalization: string, algorithm: string, limit: number | ""): string
    finalChunk(): Promise<void>
  }
}
declare module "mailauth/lib/dkim/header/index.js" {
  import type { HeaderLine } from "mailauth/lib/dkim/dkim-verifier.js"
  /** The bytes that a signature is made of, and the tags of its field but for `b`. */
  export const generateCanonicalizedHeader: (
    type: "DKIM",
    lines: { readonly headers: ReadonlyArray<HeaderLine>; readonly keys: string },
    options: {
      readonly signingDomain: string
      readonly selector: string
      readonly algorithm: string
      readonly canonicalization: string
      readonly bodyHash: string
      /** Seconds. */
      readonly timestamp: number
      readonly expiration: false
    },
  ) => { readonly canonicalizedHeader: Buffer; readonly dkimHeaderOpts: Readonly<Record<string, string | number>> }
}
declare module "mailauth/lib/tools.js" {
  /** A field in relaxed canonical form (RFC 6376 section 3.4.2), and what is to stand behind it. */
  export const formatRelaxedLine: (line: Buffer, suffix: string) => Buffer
  /** A signature field in folded lines, without the line break at its end. */
  export const formatSignatureHeaderLine: (
    type: "DKIM",
    values: Readonly<Record<string, string | number>>,
    folded: boolean,
  ) => string
  /** A method's result as `Authentication-Results` has it. */
  export const formatAuthHeaderRow: (
    method: string,
    status: { readonly result: string; readonly comment?: string | false },
    options?: { readonly strict?: boolean },
  ) => string
}
