/**
 * What is in an export: one JSON Lines file per resource in the API's own shapes, and an mbox per Identity. Vault values
 * are never among them: a session's download adds them as it goes.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { Effect, Option } from "effect"
import { CardQueries } from "../../card/CardQueries.ts"
import { ConnectorQueries } from "../../connectors/ConnectorQueries.ts"
import { EventQueries } from "../../events/EventQueries.ts"
import { IdentityQueries } from "../../identity/IdentityQueries.ts"
import { MailSettingsQueries } from "../../mail/MailSettingsQueries.ts"
import { MessageQueries } from "../../mail/MessageQueries.ts"
import { Drafts } from "../../mail/sending/Drafts.ts"
import { SendingQueries } from "../../mail/sending/SendingQueries.ts"
import * as Cursors from "../../sealing/Cursors.ts"
import { Vault } from "../../vault/Vault.ts"
import { WebhookQueries } from "../../webhooks/WebhookQueries.ts"
import { ApiKeys } from "../ApiKeys.ts"
import type { ExportPieces } from "./ExportPieces.ts"

/** Whose reading sides an export is made of. */
export type Needs =
  | ApiKeys
  | CardQueries
  | ConnectorQueries
  | Drafts
  | EventQueries
  | IdentityQueries
  | MailSettingsQueries
  | MessageQueries
  | SendingQueries
  | Vault
  | WebhookQueries

const page = 200

/** Writes the members of the whole Org, or of one Identity (`canonical`). */
export const write = Effect.fnUntraced(function* (org: string, canonical: string | null, pieces: ExportPieces) {
  const identities = yield* IdentityQueries
  const vault = yield* Vault
  const found =
    canonical === null
      ? yield* Cursors.all((request) => identities.list(org, request))
      : [yield* identities.read(org, canonical)]
  yield* pieces.lines("identities.jsonl", found)
  yield* events(org, canonical, pieces)
  if (canonical === null) {
    const keys = yield* ApiKeys
    yield* pieces.lines("api_keys.jsonl", yield* Cursors.all((request) => keys.list(org, request)))
    const secrets = yield* Cursors.all((request) => vault.list({ org, identity: null }, request))
    yield* pieces.lines(
      "vault.jsonl",
      secrets.map((secret) => ({ identity: null, ...secret })),
    )
  }
  for (const identity of found) yield* belongings(org, identity, pieces)
})

const events = Effect.fnUntraced(function* (org: string, canonical: string | null, pieces: ExportPieces) {
  const queries = yield* EventQueries
  let cursor: string | undefined
  do {
    const { events: found, next_cursor }: Effect.Success<ReturnType<typeof queries.list>> = yield* queries.list(org, {
      limit: page,
      cursor,
      ...(canonical === null ? {} : { handle: canonical }),
    })
    yield* pieces.lines("events.jsonl", found)
    cursor = next_cursor ?? undefined
  } while (cursor !== undefined)
})

const belongings = Effect.fnUntraced(function* (
  org: string,
  identity: { readonly id: IdentityId; readonly handle: string },
  pieces: ExportPieces,
) {
  const { id, handle } = identity
  const cards = yield* CardQueries
  const settings = yield* MailSettingsQueries
  const webhooks = yield* WebhookQueries
  const connectors = yield* ConnectorQueries
  const vault = yield* Vault
  const tagged = (values: ReadonlyArray<object>) => values.map((value) => ({ identity: handle, ...value }))
  const card = yield* Effect.option(cards.read(id))
  if (card._tag === "Some") yield* pieces.lines("cards.jsonl", tagged([card.value.card]))
  yield* pieces.lines(
    "allowed_recipients.jsonl",
    tagged(yield* Cursors.all((request) => settings.recipients(id, request))),
  )
  yield* pieces.lines("webhooks.jsonl", tagged(yield* Cursors.all((request) => webhooks.list(id, request))))
  yield* pieces.lines("connectors.jsonl", tagged((yield* connectors.list(id)).connectors))
  yield* pieces.lines(
    "vault.jsonl",
    tagged(yield* Cursors.all((request) => vault.list({ org, identity: id }, request))),
  )
  yield* drafts(identity, pieces)
  yield* mailbox(identity, pieces)
})

/** One at a time, as each may be as large as a message. */
const drafts = Effect.fnUntraced(function* (
  { id, handle }: { readonly id: IdentityId; readonly handle: string },
  pieces: ExportPieces,
) {
  const kept = yield* Drafts
  for (const summary of yield* Cursors.all((request) => kept.list(id, request))) {
    const found = yield* Effect.option(kept.read(id, summary.id))
    if (found._tag === "Some") yield* pieces.lines("drafts.jsonl", [{ identity: handle, ...found.value.draft }])
  }
})

/** `folders.jsonl`, `messages.jsonl` with the folders each stands in, and the originals as mboxrd (RFC 4155, with `From ` lines quoted reversibly). */
const mailbox = Effect.fnUntraced(function* (
  identity: { readonly id: IdentityId; readonly handle: string },
  pieces: ExportPieces,
) {
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
        // What went out also says what became of it.
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

/** A slice at a time, so that a large message holds nothing else up; `begins` where one begins a line. */
export const slices = function* (raw: Uint8Array) {
  let begins = true
  for (let at = 0; at < raw.length;) {
    let end = Math.min(raw.length, at + sliceBytes)
    // A line break is not parted, and neither is the beginning of a line; a line as long as the slice is.
    const line = end < raw.length ? raw.subarray(at, end).lastIndexOf(lineFeed) : -1
    if (line >= 0) end = at + line + 1
    else if (end < raw.length && raw[end - 1] === carriageReturn) end--
    yield { slice: raw.subarray(at, end), begins }
    begins = raw[end - 1] === lineFeed
    at = end
  }
}

/** `Sat Nov 21 12:00:00 2026`, in UTC. */
const asctime = (at: Date) =>
  at.toUTCString().replace(/^(\w{3}), (\d{2}) (\w{3}) (\d{4}) ([\d:]{8}) GMT$/, "$1 $3 $2 $5 $4")
