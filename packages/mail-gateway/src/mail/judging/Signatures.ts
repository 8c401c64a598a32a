/**
 * Verifies the DKIM signatures of a message and decides which of them count. The library checks each signature (RFC
 * 6376) over the same header rows that are shown. A signature that omits part of the body, or a field that affects what
 * a reader sees, proves nothing. The number and the size of signatures are limited before the library sees them.
 */
import { DkimVerifier, type DkimResult, type HeaderLine } from "mailauth/lib/dkim/dkim-verifier.js"
import { arc } from "mailauth/lib/arc/index.js"
import { formatAuthHeaderRow } from "mailauth/lib/tools.js"
import { header, type Row } from "../mime/Header.ts"
import type { Part } from "../mime/Part.ts"
import * as BodyHash from "./BodyHash.ts"

export type Lookup = (name: string, type: string) => Promise<Array<string> | Array<Array<string>>>

/** Legitimate messages have one to three signatures of less than 1 KB. */
const limits = { signatures: 10, bytes: 8 * 1024, names: 200, domain: 255, arcFields: 30 }
/**
 * The library searches for the end of a run of white space from each of its characters, which is quadratic. No folding
 * is this long.
 */
const gap = /\s{200}/

/**
 * Fields that may occur once (RFC 5322 section 3.6, RFC 2045). Readers differ in which of two they show, and a
 * signature covers only one.
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
 * Fields that name the author, the subject, or how the body is read. If such a field is present but not signed, anyone
 * can change it. `To` and `Cc` are not included: they make no statement in the author's name, and large senders do not
 * sign them.
 */
const mustBeSigned = ["from", "sender", "reply-to", "subject", "content-disposition"] as const

/** The field in which a service names the DID of the Identity that sent a message. */
export const agentField = "agent-identity"

const identity = /^(?:7bit|8bit|binary)?$/i

/** A media type that every reader parses alike: no comments, no continuations, nothing after a quoted string. */
const plainType = /^[\w.+-]+\/[\w.+-]+(?:\s*;\s*[\w-]+=(?:"[^"\\]*"|[^\s"();*]+))*\s*;?$/

/**
 * Returns whether the field has such a type and no repeated parameter: of two, some readers take the first and others
 * the last.
 */
const isPlainType = (value: string): boolean => {
  if (value.length > 1_000 || !plainType.test(value)) return false
  const names = Array.from(value.replace(/"[^"]*"/g, "").matchAll(/;\s*([\w-]+)=/g), ([, name]) => name!.toLowerCase())
  return new Set(names).size === names.length
}

/**
 * Returns whether the body can be read in only one way although its descriptive fields are unsigned, which some large
 * senders do not sign. This is so for plain UTF-8 text, and for a multipart whose boundary is the first and the last
 * line of the body, with alternatives of a single text.
 */
const isUnambiguous = (raw: Buffer, root: Part): boolean => {
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

/** Returns whether a signature covers everything that is shown. */
const covers = (raw: Buffer, root: Part, signed: ReadonlySet<string>): boolean => {
  const present = (name: string) => root.rows.some(({ key }) => key === name)
  // A missing subject may have been removed, unless its absence is signed.
  if (!signed.has("subject")) return false
  if (mustBeSigned.some((name) => present(name) && !signed.has(name))) return false
  const open = ["content-type", "content-transfer-encoding"].some((name) => present(name) && !signed.has(name))
  return !open || isUnambiguous(raw, root)
}

/** Returns the value of a tag. The library validates the list. */
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
    // A signature of part of the body does not count, so that part is not hashed.
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
  /** The signing domain; empty if it could not be read. */
  readonly domain: string
  readonly result: string
  /** Whether the signature covers everything that is shown and is not a test. Other signatures do not count. */
  readonly coversAll: boolean
  /** Whether the signature covers the field `Agent-Identity`. */
  readonly coversAgent: boolean
}

interface Signatures {
  readonly signatures: ReadonlyArray<Signature>
  /** Rows for `Authentication-Results`: one per signature, and one for the ARC chain if there is one. */
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
  const isTest = tag(result.rr ?? "", "t")
    .split(":")
    .some((flag) => flag.trim().toLowerCase() === "y")
  const coversAll = !isPartial && !isTest && covers(raw, root, signed)
  if (isTest && status.result === "pass") {
    // A signature in test mode counts as none (RFC 6376 section 3.6.1).
    status.result = "policy"
    status.comment = "the domain is testing DKIM"
  } else if (isPartial) {
    status.result = "policy"
    status.comment = "covers only part of the body"
  } else if (status.result === "pass" && !coversAll) {
    status.result = "policy"
    status.comment = "leaves out fields that are shown"
  }
  return {
    domain: result.signingDomain ?? "",
    result: status.result,
    coversAll,
    coversAgent: signed.has(agentField),
  }
}

/** The cached result for messages without signatures and seals. */
let unsigned: Promise<Signatures> | undefined

export const verify = (raw: Buffer, root: Part, lookup: Lookup): Promise<Signatures> => {
  const chosen = root.rows.filter(({ key }) => key === "dkim-signature").filter((row) => isReasonable(raw, row))
  const arcFields = root.rows.filter(({ key }) => key.startsWith("arc-"))
  const isChain = arcFields.length <= limits.arcFields && arcFields.every((row) => isShort(raw, row))
  const selected = [...chosen.slice(0, limits.signatures), ...(isChain ? arcFields : [])]
  return selected.length === 0
    ? (unsigned ??= checked(raw, root, selected, lookup))
    : checked(raw, root, selected, lookup)
}

const checked = async (raw: Buffer, root: Part, selected: ReadonlyArray<Row>, lookup: Lookup): Promise<Signatures> => {
  const verifier = new Verifier(raw.subarray(root.bodyStart), lookup)
  await verifier.messageHeaders({ parsed: selected.map((row) => lineOf(raw, row)) })
  // Finds signed fields in the whole header.
  verifier.headers = { parsed: root.rows.map((row) => lineOf(raw, row)) }
  await verifier.finalChunk()
  const signatures = verifier.results.map((result) => judged(raw, root, result))
  const info = verifier.results.map(({ status }) => formatAuthHeaderRow("dkim", status, { strict: true }))
  const chain = await arc(verifier.arc, { resolver: lookup })
  return { signatures, info, chain: chain.info === undefined ? [] : [chain.info] }
}
