/** The mail of an Identity in an export: its drafts, its folders, its messages, and the originals as an mbox. */
import { Effect, Option } from "effect"
import type { ExportedIdentity, ExportWriter } from "../Capability.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { MessageQueries } from "./MessageQueries.ts"
import { Drafts } from "./sending/Drafts.ts"
import { SendingQueries } from "./sending/SendingQueries.ts"

const page = 200

/** Reads one draft at a time, because a draft may be as large as a message. */
export const drafts = Effect.fnUntraced(function* ({ id, handle }: ExportedIdentity, pieces: ExportWriter) {
  const queries = yield* Drafts
  for (const summary of yield* Cursors.all((request) => queries.list(id, request))) {
    const found = yield* Effect.option(queries.read(id, summary.id))
    if (found._tag === "Some") yield* pieces.lines("drafts.jsonl", [{ identity: handle, ...found.value.draft }])
  }
})

/**
 * Writes `folders.jsonl`, `messages.jsonl` with the folders of each message, and the original messages as mboxrd
 * (RFC 4155, with `From ` lines quoted reversibly).
 */
export const mailbox = Effect.fnUntraced(function* (identity: ExportedIdentity, pieces: ExportWriter) {
  const messages = yield* MessageQueries
  const sending = yield* SendingQueries
  const member = `${identity.handle}.mbox`
  yield* pieces.append(member, new Uint8Array(0))
  const folders = yield* messages.folders(identity.id)
  yield* pieces.lines(
    "folders.jsonl",
    folders.map((folder) => ({ identity: identity.handle, ...folder })),
  )
  let after = 0
  while (true) {
    const { messages: found, last } = yield* messages.oldest(identity.id, after, page)
    const places = yield* messages.places(found)
    yield* pieces.lines(
      "messages.jsonl",
      yield* Effect.forEach(found, (message) =>
        // An outbound message carries its delivery status too.
        Effect.map(
          message.direction === "outbound"
            ? Effect.option(sending.outbound(identity.id, message.id))
            : Effect.succeed(Option.none()),
          (outbound) => ({
            identity: identity.handle,
            ...message,
            ...Option.getOrElse(outbound, () => ({})),
            folders: places.get(message.id) ?? [],
          }),
        ),
      ),
    )
    for (const message of found) {
      const raw = yield* messages.raw(identity.id, message.id)
      const from = `From ${message.from?.address ?? "MAILER-DAEMON"} ${asctime(message.received_at)}\n`
      yield* pieces.append(member, Buffer.from(from, "latin1"))
      for (const { slice, begins } of slices(raw)) {
        const text = Buffer.from(slice.buffer, slice.byteOffset, slice.byteLength)
          .toString("latin1")
          .replace(/\r\n/g, "\n")
          .replace(begins ? /^(>*From )/gm : /(?<=\n)(>*From )/g, ">$1")
        yield* pieces.append(member, Buffer.from(text, "latin1"))
        yield* Effect.yieldNow
      }
      yield* pieces.append(member, Buffer.from(raw.at(-1) === lineFeed ? "\n" : "\n\n"))
    }
    if (found.length < page) return
    after = last
  }
})

const lineFeed = 10
const carriageReturn = 13
const sliceBytes = 128 * 1024

/** Cuts a message into slices, so that a large one does not block the event loop. `begins`: the slice begins a line. */
const slices = function* (raw: Uint8Array) {
  let begins = true
  for (let at = 0; at < raw.length;) {
    let end = Math.min(raw.length, at + sliceBytes)
    // A slice ends after a line break, never between CR and LF; only a line longer than a slice is divided.
    const line = end < raw.length ? raw.subarray(at, end).lastIndexOf(lineFeed) : -1
    if (line >= 0) end = at + line + 1
    else if (end < raw.length && raw[end - 1] === carriageReturn) end--
    yield { slice: raw.subarray(at, end), begins }
    begins = raw[end - 1] === lineFeed
    at = end
  }
}

/** Formats a time for the `From ` line: `Sat Nov 21 12:00:00 2026`, in UTC. */
const asctime = (at: Date) =>
  at.toUTCString().replace(/^(\w{3}), (\d{2}) (\w{3}) (\d{4}) ([\d:]{8}) GMT$/, "$1 $3 $2 $5 $4")
