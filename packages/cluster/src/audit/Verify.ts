/**
 * Walks an export of the audit log line by line, without the service. Each record's hash is computed from the one before it, and
 * the last one is compared with the signed head. The service says of each record whether it wrote and sealed it; whoever has
 * the master key can check the seals here too. A chain that was cut off at its end, and one that somebody with the master key
 * rewrote, shows only against a head that was kept elsewhere.
 */
import { Option, Schema } from "effect"
import type { SealKeys } from "../sealing/ServiceKey.ts"
import { bridgeAction, hashOf, isBridgeOf, isSealedBy, isSignedBy, origin } from "./Chain.ts"

const Head = Schema.Struct({
  org_id: Schema.String,
  seq: Schema.Int,
  hash: Schema.String,
  sealed_at: Schema.String,
  signature: Schema.String,
  key: Schema.Record(Schema.String, Schema.Unknown),
})

const First = Schema.Struct({
  head: Schema.NullOr(Head),
  /** The record after which the service refuses to continue the log. */
  refused_seq: Schema.optionalKey(Schema.Int),
  since: Schema.NullOr(Schema.String),
  until: Schema.NullOr(Schema.String),
})

const Sealed = Schema.Struct({
  id: Schema.String,
  action: Schema.String,
  target: Schema.NullOr(Schema.Struct({ id: Schema.NullOr(Schema.String), name: Schema.NullOr(Schema.String) })),
  sealed: Schema.Struct({
    seq: Schema.Int,
    hash: Schema.String,
    previous: Schema.String,
    /** `none`: the service had not written the record when it was sealed. `lost`: the record was altered since. */
    proof: Schema.optionalKey(Schema.Literals(["none", "lost"])),
    /** The MAC and the id of its key; seals of versions without MACs have neither. */
    key: Schema.optionalKey(Schema.String),
    mac: Schema.optionalKey(Schema.String),
    /** `lost`: the MAC is wrong, or missing although it is required. */
    seal: Schema.optionalKey(Schema.Literal("lost")),
  }),
})

const readFirst = Schema.decodeUnknownOption(First)
const readSealed = Schema.decodeUnknownOption(Sealed)

type Json = Parameters<typeof hashOf>[1]

export interface Verdict {
  readonly records: number
  /** Numbers of the first and the last record. */
  readonly from: number | null
  readonly to: number | null
  /** The first errors; empty for an intact log. */
  readonly faults: ReadonlyArray<string>
  /** The end that the service signed; the last record if none was signed when the export began. */
  readonly head: { readonly seq: number; readonly hash: string } | null
}

const reportedAtMost = 20

const parse = (line: string): Json | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

/**
 * Makes a verifier. `kept` is a head from elsewhere (an Event `audit.head`) that the log must contain. `keys` are the
 * seal keys if the master key is available; for other keys the service's own findings are used.
 */
export const make = (kept?: { readonly seq: number; readonly hash: string }, keys: SealKeys["byId"] = new Map()) => {
  const faults: Array<string> = []
  const fault = (text: string) => void (faults.length < reportedAtMost && faults.push(text))
  let first: typeof First.Type | undefined
  let lines = 0
  let records = 0
  let from: number | null = null
  let last: { readonly seq: number; readonly hash: string; readonly hasMac: boolean } | undefined
  let met = false

  const begin = (line: string) => {
    const read = readFirst(parse(line))
    if (Option.isNone(read)) return fault("The first line does not say where the log ends: this is no whole export.")
    first = read.value
    const { head } = first
    if (head !== null && !isSignedBy(head.key, head, head.signature))
      fault("The signature of the log's end is not good.")
    if (first.refused_seq !== undefined)
      fault(`The log ends at record ${first.refused_seq}, which is not the end that the service sealed.`)
  }

  /** Returns what is wrong with a seal, or undefined. */
  const sealFault = ({ id, action, target, sealed }: typeof Sealed.Type): string | undefined => {
    const name = `Record ${sealed.seq} (${id})`
    const { key, mac } = sealed
    if (sealed.seal === "lost") return `${name} was not sealed by the service.`
    const head = first?.head
    if (mac === undefined) return undefined
    if (key !== undefined && keys.has(key) && head != null) {
      const covered = { org_id: head.org_id, ...sealed }
      if (!isSealedBy(keys, covered, key, Buffer.from(mac, "hex"))) return `${name} was not sealed by the service.`
    }
    if (last === undefined || last.hasMac) return undefined
    // Seals without MACs prove nothing by themselves; a bridge says which ones the service found.
    const isBridge = action === bridgeAction && target !== null && head != null
    return isBridge && isBridgeOf(head.key, { org_id: head.org_id, seq: last.seq, hash: last.hash }, target)
      ? undefined
      : `No bridge closes the records before record ${sealed.seq}, which have no MACs.`
  }

  const next = (line: string, number: number) => {
    const value = parse(line)
    const read = readSealed(value)
    if (value?.["sealed"] === null) return fault(`Record ${String(value["id"])} was put in: it was never sealed.`)
    if (value === undefined || Option.isNone(read)) return fault(`Line ${number} is no sealed record.`)
    const { id, sealed } = read.value
    records++
    from ??= sealed.seq
    if (last === undefined) {
      const org = first?.head?.org_id
      if (sealed.seq === 1 && org !== undefined && sealed.previous !== Buffer.from(origin(org)).toString("hex")) {
        fault(`Record 1 (${id}) does not begin the log of this account.`)
      }
      if (sealed.seq !== 1 && first?.since === null)
        fault(`The log begins with record ${sealed.seq}; those before have aged out, or were taken away.`)
    } else {
      if (sealed.seq !== last.seq + 1)
        fault(`Between record ${last.seq} and record ${sealed.seq} something is missing.`)
      else if (sealed.previous !== last.hash) fault(`Record ${sealed.seq} (${id}) does not follow record ${last.seq}.`)
    }
    const hash = Buffer.from(hashOf(Buffer.from(sealed.previous, "hex"), value, sealed.proof === "none")).toString(
      "hex",
    )
    if (hash !== sealed.hash) fault(`Record ${sealed.seq} (${id}) is not what was sealed.`)
    else if (sealed.proof !== undefined) fault(`Record ${sealed.seq} (${id}) was not written by the service.`)
    else {
      const wrong = sealFault(read.value)
      if (wrong !== undefined) fault(wrong)
    }
    last = { seq: sealed.seq, hash: sealed.hash, hasMac: sealed.mac !== undefined }
    if (kept?.seq === sealed.seq) {
      met = true
      if (kept.hash !== sealed.hash) fault(`Record ${sealed.seq} is not the one that the kept head was made of.`)
    }
    const head = first?.head
    if (head?.seq === sealed.seq && head.hash !== sealed.hash)
      fault(`The log's signed end is not the hash of record ${sealed.seq}.`)
  }

  return {
    add: (line: string): void => {
      if (line.trim() === "") return
      lines++
      if (lines === 1) begin(line)
      else next(line, lines)
    },
    end: (): Verdict => {
      const head = first?.head ?? null
      if (first !== undefined && first.until === null && head !== null && (last?.seq ?? 0) < head.seq) {
        fault(`The log ends at record ${last?.seq ?? 0}, and ${head.seq} were sealed.`)
      }
      if (kept !== undefined && !met) fault(`Record ${kept.seq}, of which a head was kept, is not in it.`)
      const end = head ?? last
      return {
        records,
        from,
        to: last?.seq ?? null,
        faults,
        head: end === undefined ? null : { seq: end.seq, hash: end.hash },
      }
    },
  }
}
