/** What a release wrote, kept beside the tests: samples of everything as it was encoded, and its shapes. */
import { readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { Effect, Arbitrary } from "effect"
import { SchemaBinary } from "effect/encoding"
import { RpcMessage } from "effect/rpc"
import { type Kept, kept } from "./Kept.ts"
import { makeTable, type Table } from "./Shape.ts"

export interface Golden {
  readonly version: string
  /** A frame of each kind between processes, as hexadecimal digits. */
  readonly frames: Readonly<Record<string, string>>
  readonly shapes: Table
  readonly kept: Readonly<Record<string, { readonly shape: number; readonly samples: ReadonlyArray<string> }>>
}

export const folder = path.join(import.meta.dirname, "golden")

/** The releases whose processes and records this one meets. */
export const releases = (): ReadonlyArray<Golden> =>
  readdirSync(folder).map((name) => JSON.parse(readFileSync(path.join(folder, name), "utf8")) as Golden)

const bytes = (text: string) => new TextEncoder().encode(text)

/** The library's envelopes: both ends must agree on them to the bit, so a change stops every message between two versions. */
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

/** Values of the schema, the same at every run; fewer where what is made by chance breaks a rule between its members. */
const samplesOf = ({ schema, write, read }: Kept): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let seed = 0; seed < 60 && found.length < count; seed++) {
    try {
      const sampled = Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(schema), { seed, count: 1, size: 3 }))
      const text = write(sampled[0])
      read(text)
      found.push(text)
    } catch {
      // Another one.
    }
  }
  return [...new Set(found)]
}

/** This release, as a later one will want to know it. */
export const record = (version: string): Golden => {
  const { table, add } = makeTable()
  const all = Object.entries(kept).map(
    ([name, one]) => [name, { shape: add(one.schema), samples: samplesOf(one) }] as const,
  )
  return { version, frames: frames(), shapes: table, kept: Object.fromEntries(all) }
}
