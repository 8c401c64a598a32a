/**
 * The DKIM signatures of a message, and which of them count: the library checks each (RFC 6376, exactly), over the rows
 * that are also what is shown. One that leaves out part of the body, or a field that decides what a reader sees, proves
 * nothing about what is seen. How many there are and how long they may be is bounded before the library sees them.
 */
import { DkimVerifier, type DkimResult, type HeaderLine } from "mailauth/lib/dkim/dkim-verifier.js"
import { arc } from "mailauth/lib/arc/index.js"
import { formatAuthHeaderRow } from "mailauth/lib/tools.js"
import { header, type Row } from "../mime/Header.ts"
import type { Part } from "../mime/Part.ts"
import * as BodyHash from "./BodyHash.ts"

export type Lookup = (name: string, type: string) => Promise<Array<string> | Array<Array<string>>>

/** Honest messages have one to three signatures of under 1 KB. */
const limits = { signatures: 10, bytes: 8 * 1024, names: 200, domain: 255, arcFields: 30 }
/** The library looks for the end of each run of white space from each of its characters. No fold is so long. */
const gap = /\s{200}/

/**
 * Fields a message has at most once (RFC 5322 section 3.6, RFC 2045). Of two, one reader shows the first and another
 * the last, and a signature covers but one.
 */
const singletons = new Set(
  "from sender reply-to to cc bcc subject date message-id in-reply-to references mime-version content-type content-transfer-encoding content-disposition content-id content-description".split(
    " ",
  ),
)

export const repeats = (rows: ReadonlyArray<Row>): boolean => {
  const seen = new Set<string>()
  for (const { key } of rows) {
    if (!singletons.has(key)) continue
    if (seen.has(key)) return true
    seen.add(key)
  }
  return false
}

/**
 * Fields that say who speaks, of what, and how the body is to be read. Where one stands in a message, a signature that
 * does not cover it lets anybody write it. (`To` and `Cc` are not among them: they say nothing in the author's name, and
 * large senders leave them out.)
 */
const telling = ["from", "sender", "reply-to", "subject", "content-disposition"] as const

const identity = /^(?:7bit|8bit|binary)?$/i

/** A type and its parameters as every reader reads them: no comments, nothing in pieces, nothing behind a quoted string. */
const plainType = /^[\w.+-]+\/[\w.+-]+(?:\s*;\s*[\w-]+=(?:"[^"\\]*"|[^\s"();*]+))*\s*;?$/

/** Whether the field is written so, and says nothing twice: of two, one reader takes the first and another the last. */
const isPlainType = (value: string): boolean => {
  if (value.length > 1_000 || !plainType.test(value)) return false
  const names = Array.from(value.replace(/"[^"]*"/g, "").matchAll(/;\s*([\w-]+)=/g), ([, name]) => name!.toLowerCase())
  return new Set(names).size === names.length
}

/**
 * Whether the body can be read in one way only, though the fields that describe it are not signed: some of the largest
 * senders sign neither. It can where it is plain text of UTF-8, and where the boundary is the body's own first and last
 * line and the alternatives are those of one text.
 */
const speaksForItself = (raw: Buffer, root: Part): boolean => {
  const field = (name: string) => header(raw, root.rows, name)
  if (!identity.test(field("content-transfer-encoding") ?? "") || !isPlainType(field("content-type") ?? "text/plain")) {
    return false
  }
  if (root.type === "text/plain") {
    const { charset, ...others } = root.parameters
    return /^(?:utf-8|us-ascii)?$/i.test(charset ?? "") && Object.keys(others).length === 0
  }
  const boundary = root.parameters["boundary"]
  if (boundary === undefined || root.parts.length === 0) return false
  if (root.type === "multipart/alternative") {
    const types = root.parts.map(({ type }) => type)
    if (types.length !== 2 || types[0] !== "text/plain" || types[1] === "text/plain") return false
  } else if (root.type !== "multipart/mixed" && root.type !== "multipart/related") return false
  const delimiter = Buffer.from(`--${boundary}`, "latin1")
  const first = raw.subarray(root.bodyStart, root.bodyStart + delimiter.length + 2)
  const last = raw
    .subarray(Math.max(root.bodyStart, raw.length - delimiter.length - 100))
    .toString("latin1")
    .trimEnd()
  return (
    first.equals(Buffer.concat([delimiter, Buffer.from("\r\n")])) &&
    last.endsWith(`\r\n${delimiter.toString("latin1")}--`)
  )
}

/** Whether what a signature covers is what is seen. */
const covers = (raw: Buffer, root: Part, signed: ReadonlySet<string>): boolean => {
  const present = (name: string) => root.rows.some(({ key }) => key === name)
  // A subject that is not there was perhaps taken away, if nobody signed that there is none.
  if (!signed.has("subject")) return false
  if (telling.some((name) => present(name) && !signed.has(name))) return false
  const open = ["content-type", "content-transfer-encoding"].some((name) => present(name) && !signed.has(name))
  return !open || speaksForItself(raw, root)
}

/** The value of a tag, and nothing more: what is wrong with the list is the library's to say. */
const tag = (value: string, name: string): string =>
  new RegExp(`(?:^|;)\\s*${name}\\s*=([^;]*)`, "i").exec(value)?.[1]?.trim() ?? ""

const isShort = (raw: Buffer, { start, end }: Row): boolean =>
  end - start <= limits.bytes && !gap.test(raw.toString("latin1", start, end))

const isReasonable = (raw: Buffer, row: Row): boolean => {
  if (!isShort(raw, row)) return false
  const value = header(raw, [row], row.key) ?? ""
  return (
    tag(value, "d").length <= limits.domain &&
    tag(value, "s").length <= limits.domain &&
    tag(value, "h").split(":").length <= limits.names
  )
}

class Verifier extends DkimVerifier {
  private readonly body: ReturnType<typeof BodyHash.make>
  constructor(body: Buffer, resolver: Lookup) {
    super({ resolver, strict: true })
    this.body = BodyHash.make(body)
  }
  override addBodyHash(canonicalization: string, algorithm: string, limit: number | ""): string {
    const key = `${canonicalization} ${algorithm} ${limit}`
    if (this.bodyHashes.has(key)) return key
    const { hash, length } = this.body.of(canonicalization, algorithm === "sha1" ? "sha1" : "sha256")
    // What covers a part of the body counts for nothing, so there is no need to hash that part.
    const whole = limit === "" || limit >= length
    this.bodyHashes.set(key, {
      hash: whole ? hash : "",
      canonicalizedLength: length,
      bodyHashedBytes: whole ? length : limit,
      byteLength: length,
      digest: () => (whole ? hash : ""),
      update: () => {},
      setContentType: () => {},
      getMimeStructureStart: () => 0,
    })
    return key
  }
}

export interface Signature {
  /** The domain that signed; empty where it could not be read. */
  readonly domain: string
  readonly result: string
  /** Whether it covers what is seen, and is meant; one that does not counts for nothing. */
  readonly coversAll: boolean
}

export interface Signatures {
  readonly signatures: ReadonlyArray<Signature>
  /** For `Authentication-Results`: one for each signature; and one of the chain of ARC seals, where there is one. */
  readonly info: ReadonlyArray<string>
  readonly chain: ReadonlyArray<string>
}

const lineOf = (raw: Buffer, row: Row): HeaderLine => {
  const line = raw.subarray(row.start, raw[row.end - 1] === 10 ? row.end - 2 : row.end)
  return { key: row.key, casedKey: raw.toString("latin1", row.start, Math.max(row.start, row.value - 1)).trim(), line }
}

const judged = (raw: Buffer, root: Part, result: DkimResult): Signature => {
  const { status } = result
  const isPartial =
    result.canonBodyLengthLimited === true && (result.canonBodyLengthTotal ?? 0) > (result.canonBodyLength ?? 0)
  const signed = new Set((result.signingHeaders?.keys ?? "").split(":").map((name) => name.trim().toLowerCase()))
  const isTried = tag(result.rr ?? "", "t")
    .split(":")
    .some((flag) => flag.trim().toLowerCase() === "y")
  const coversAll = !isPartial && !isTried && covers(raw, root, signed)
  if (isTried && status.result === "pass") {
    // Such mail is to be treated as if nobody had signed it (RFC 6376 section 3.6.1).
    status.result = "policy"
    status.comment = "its domain is only trying to sign"
  } else if (isPartial) {
    status.result = "policy"
    status.comment = "covers only part of the body"
  } else if (status.result === "pass" && !coversAll) {
    status.result = "policy"
    status.comment = "leaves out fields that are shown"
  }
  return {
    domain: result.signingDomain ?? "",
    result: status.result === "temperr" ? "temperror" : status.result,
    coversAll,
  }
}

/** What is said of any message without signatures and seals. */
let unsigned: Promise<Signatures> | undefined

export const verify = (raw: Buffer, root: Part, lookup: Lookup): Promise<Signatures> => {
  const chosen = root.rows.filter(({ key }) => key === "dkim-signature").filter((row) => isReasonable(raw, row))
  const links = root.rows.filter(({ key }) => key.startsWith("arc-"))
  const isChain = links.length <= limits.arcFields && links.every((row) => isShort(raw, row))
  const given = [...chosen.slice(0, limits.signatures), ...(isChain ? links : [])]
  return given.length === 0 ? (unsigned ??= checked(raw, root, given, lookup)) : checked(raw, root, given, lookup)
}

const checked = async (raw: Buffer, root: Part, given: ReadonlyArray<Row>, lookup: Lookup): Promise<Signatures> => {
  const verifier = new Verifier(raw.subarray(root.bodyStart), lookup)
  await verifier.messageHeaders({ parsed: given.map((row) => lineOf(raw, row)) })
  // The fields that signatures cover are looked up in all of them.
  verifier.headers = { parsed: root.rows.map((row) => lineOf(raw, row)) }
  await verifier.finalChunk()
  const signatures = verifier.results.map((result) => judged(raw, root, result))
  const info = verifier.results.map(({ status }) => formatAuthHeaderRow("dkim", status, { strict: true }))
  const chain = await arc(verifier.arc, { resolver: lookup })
  return { signatures, info, chain: chain.info === undefined ? [] : [chain.info] }
}
