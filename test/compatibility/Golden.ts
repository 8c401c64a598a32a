/**
 * Recorded data of releases, stored next to the tests: encoded samples of all messages and stored values, and the shapes of their schemas.
 */
import { readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { Effect, Arbitrary } from "effect"
import { SchemaBinary } from "effect/encoding"
import { RpcMessage } from "effect/rpc"
import { type EncodedKind, encodedKinds } from "./EncodedKinds.ts"
import { makeTable, type Table } from "./Shape.ts"

export interface Golden {
  readonly version: string
  /** A frame of each kind between processes, in hexadecimal. */
  readonly frames: Readonly<Record<string, string>>
  readonly shapes: Table
  readonly kept: Readonly<Record<string, { readonly shape: number; readonly samples: ReadonlyArray<string> }>>
}

export const folder = path.join(import.meta.dirname, "golden")

/** Returns the releases that this version must be compatible with. */
export const releases = (): ReadonlyArray<Golden> =>
  readdirSync(folder).map((name) => JSON.parse(readFileSync(path.join(folder, name), "utf8")) as Golden)

const bytes = (text: string) => new TextEncoder().encode(text)

/** The library's envelopes. Both processes must encode them identically, so a change breaks every message between two versions. */
const envelopes: Readonly<Record<string, typeof RpcMessage.EncodedSchema.Type>> = {
  request: {
    _tag: "Request",
    id: "1",
    tag: "Lease",
    payload: bytes("payload"),
    headers: [["name", "value"]],
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    sampled: false,
  },
  ack: { _tag: "Ack", requestId: "1" },
  interrupt: { _tag: "Interrupt", requestId: "1" },
  chunk: { _tag: "Chunk", requestId: "1", values: bytes("values") },
  exit: { _tag: "Exit", requestId: "1", exit: bytes("exit") },
  defect: { _tag: "Defect", defect: bytes("defect") },
  ping: { _tag: "Ping" },
}

const options = { fingerprint: true } as const

export const frames = (): Golden["frames"] =>
  Object.fromEntries(
    Object.entries(envelopes).map(([name, envelope]) => {
      const encoder = SchemaBinary.encoder(RpcMessage.EncodedSchema, options)
      return [name, Buffer.from(encoder.encode(envelope)).toString("hex")]
    }),
  )

const count = 4

/** Returns sample values of the schema, the same in every run; fewer if random values violate a rule between members. */
const samplesOf = ({ schema, write, read }: EncodedKind): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let seed = 0; seed < 60 && found.length < count; seed++) {
    try {
      const sampled = Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(schema), { seed, count: 1, size: 3 }))
      const text = write(sampled[0])
      read(text)
      found.push(text)
    } catch {
      // Tries the next seed.
    }
  }
  return [...new Set(found)]
}

/** Returns the record of this release, with which later releases are compared. */
export const record = (version: string): Golden => {
  const { table, add } = makeTable()
  const all = Object.entries(encodedKinds).map(
    ([name, one]) => [name, { shape: add(one.schema), samples: samplesOf(one) }] as const,
  )
  return { version, frames: frames(), shapes: table, kept: Object.fromEntries(all) }
}
