/**
 * Reads message bytes in slices, and the structure of messages. A missing structure is computed once and stored. Large
 * messages are parsed in a worker thread, as on arrival, so that they do not block the event loop.
 */
import { orUnavailable, Reads, unavailable, Writes } from "@svc/cluster/store/Database"
import { Effect, Option, Stream } from "effect"
import type { Judging } from "../../judging/VerdictPool.ts"
import * as Header from "../../mime/Header.ts"
import * as Structure from "../../mime/Structure.ts"
import { joined } from "../../SlicedWork.ts"
import type { StoredMessage } from "./Rows.ts"

/** Bytes per database response. */
const slice = 512 * 1024
/** Messages above this size (bytes) are parsed in a worker thread. */
const inProcess = 128 * 1024

/** Options for parsing a message that was not received over SMTP. */
export const reading = (host: string) => ({ ip: "", helo: "", mailFrom: "", host, isOnlyRead: true })

/** Structure of an unreadable message: its header and one opaque part. */
const opaque = (raw: Buffer): Structure.Structure => {
  const { bodyStart } = Header.read(raw, 0, raw.length)
  const head = Buffer.from(raw.subarray(0, Math.min(bodyStart, 16 * 1024)))
  const { envelope } = Structure.make(Buffer.concat([head, Buffer.from("\r\n\r\n")]))
  const body = raw.length - bodyStart
  return { envelope, body, root: { h: 0, b: 0, e: body, t: "application", s: "octet-stream", c: "8bit" } }
}

export const make = Effect.fnUntraced(function* (judging: Judging, host: string) {
  const reads = yield* Reads
  const writes = yield* Writes

  /** Streams the bytes from `from` (inclusive) to `to` (exclusive); ends early if the message was removed. */
  const bytes = ({ key, raw }: Pick<StoredMessage, "key" | "raw">, from: number, to: number) =>
    raw === undefined ? sliced(key, from, to) : Stream.succeed(raw.subarray(from, to))

  const sliced = (key: string, from: number, to: number) =>
    Stream.paginate(from, (at: number) =>
      Effect.map(
        orUnavailable(
          reads<{ slice: Uint8Array }>`
            select substring(raw from ${at + 1}::int for ${Math.min(slice, to - at)}::int) as slice
            from message_content where message_id = ${key}::uuid`,
        ),
        ([row]) => {
          const next = at + (row?.slice.length ?? 0)
          const more = row !== undefined && row.slice.length > 0 && next < to
          return [row === undefined ? [] : [row.slice], more ? Option.some(next) : Option.none<number>()] as const
        },
      ),
    )

  const made = Effect.fnUntraced(function* (raw: Buffer) {
    if (raw.length <= inProcess) return Structure.make(raw)
    const { parsed } = yield* Effect.mapError(judging.judge(raw, reading(host)), unavailable)
    // Written only by our own code.
    return parsed.structure === undefined ? opaque(raw) : (JSON.parse(parsed.structure) as Structure.Structure)
  })

  return {
    bytes,

    structure: Effect.fnUntraced(function* (message: StoredMessage) {
      const pieces = yield* Stream.runCollect(bytes(message, 0, message.size))
      const raw = yield* joined([...pieces])
      const structure = yield* made(Buffer.from(raw.buffer))
      yield* Effect.ignore(
        orUnavailable(
          writes`update message_content set structure = ${JSON.stringify(structure)} where message_id = ${message.key}::uuid`,
        ),
      )
      return structure
    }),
  }
})
