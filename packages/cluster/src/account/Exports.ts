/**
 * Exports: the data of an Org or of one Identity as JSON Lines, one file per resource in the API's own shapes, and an
 * mbox per Identity. The Org's actor collects the members as sealed pieces; a download opens them into a zip. Vault
 * values are never among the pieces: a session's download adds them as it goes.
 */
import type { IdentityId } from "@svc/domain/identity/IdentityRef"
import type { Export } from "@svc/domain/account/OrgApi"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { NotFound, Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer, Stream } from "effect"
import { Zip, ZipDeflate } from "fflate"
import { CardQueries } from "../card/CardQueries.ts"
import { EventQueries } from "../events/EventQueries.ts"
import { IdentityQueries } from "../identity/IdentityQueries.ts"
import { MailSettingsQueries } from "../mail/MailSettingsQueries.ts"
import { MessageQueries } from "../mail/MessageQueries.ts"
import { type DataKey, Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, Unhurried, Writes } from "../store/Database.ts"
import { Vault } from "../vault/Vault.ts"
import { WebhookQueries } from "../webhooks/WebhookQueries.ts"
import { ApiKeys } from "./ApiKeys.ts"

export type Needs =
  | Unhurried
  | Writes
  | Sealing
  | ApiKeys
  | CardQueries
  | EventQueries
  | IdentityQueries
  | MailSettingsQueries
  | MessageQueries
  | Vault
  | WebhookQueries

/** Archives live this long (decisions.md "Resources"). */
const lifeMillis = 7 * 24 * 60 * 60_000
const pieceBytes = 1024 * 1024
const page = 200

interface Row {
  readonly id: string
  readonly handle: string | null
  readonly status: Export["status"]
  readonly size: bigint | number | null
  readonly created_at: Date
  readonly expires_at: Date
}

const place = (org: string, id: string, member: string, number: number) => ({
  table: "export_piece",
  column: "sealed",
  row: `${id}/${member}/${number}`,
  org,
})

/** Asks for an export; the same command again is the same export. */
export const begin = Effect.fn("Exports.begin")(function* (
  org: string,
  request: { readonly export_id: string; readonly identity_id: string | null; readonly handle: string | null },
) {
  const sql = yield* Writes
  const at = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    insert into export (id, org_id, identity_id, handle, created_at, expires_at)
    select ${request.export_id}::uuid, id, ${request.identity_id}::uuid, ${request.handle}::text, ${at}::timestamptz,
           ${new Date(at.getTime() + lifeMillis)}::timestamptz
    from org where id = ${org} and status = 'active'
    on conflict (id) do nothing`
}, orUnavailable)

/** Collects every export of the Org that is waiting or was cut short. */
export const runAll = Effect.fn("Exports.runAll")(
  function* (org: string) {
    const sql = yield* Unhurried
    const waiting = yield* sql<{ id: string; canonical: string | null; data_key: Uint8Array }>`
    select e.id, i.canonical, o.data_key from export e join org o on o.id = e.org_id left join identity i on i.id = e.identity_id
    where e.org_id = ${org} and e.status in ('queued', 'running') order by e.id`
    for (const one of waiting) {
      yield* collect(org, one).pipe(
        Effect.catchCause((cause) =>
          Effect.andThen(
            Effect.logWarning("An export failed", cause),
            sql`update export set status = 'failed' where id = ${one.id}`,
          ),
        ),
      )
    }
  },
  Effect.catchTag("SqlError", () => new Unavailable({ detail: "The database did not answer in time." })),
)

/** Appends to the members of one export, a piece at a time. */
const makeWriter = Effect.fnUntraced(function* (org: string, id: string, dataKey: DataKey) {
  const sql = yield* Unhurried
  const sealing = yield* Sealing
  const open = new Map<string, { number: number; waiting: Array<Uint8Array>; bytes: number }>()
  let size = 0

  const flush = Effect.fnUntraced(function* (member: string) {
    const state = open.get(member)!
    const sealed = yield* sealing.seal(dataKey, place(org, id, member, state.number), Buffer.concat(state.waiting))
    yield* sql`insert into export_piece (export_id, member, number, sealed) values (${id}, ${member}, ${state.number}, ${sealed})`
    open.set(member, { number: state.number + 1, waiting: [], bytes: 0 })
  })

  const write = Effect.fnUntraced(function* (member: string, bytes: Uint8Array) {
    const state = open.get(member) ?? { number: 0, waiting: [], bytes: 0 }
    open.set(member, state)
    state.waiting.push(bytes)
    state.bytes += bytes.length
    size += bytes.length
    if (state.bytes >= pieceBytes) yield* flush(member)
  })

  return {
    write,
    lines: (member: string, values: ReadonlyArray<unknown>) =>
      write(member, new TextEncoder().encode(values.map((value) => `${JSON.stringify(value)}\n`).join(""))),
    finish: Effect.suspend(() => Effect.as(Effect.forEach(open.keys(), flush, { discard: true }), size)),
  }
})
type Writer = Effect.Success<ReturnType<typeof makeWriter>>

const collect = Effect.fnUntraced(function* (
  org: string,
  one: { readonly id: string; readonly canonical: string | null; readonly data_key: Uint8Array },
) {
  const sql = yield* Unhurried
  const sealing = yield* Sealing
  const dataKey = yield* Effect.orDie(sealing.openDataKey(org, one.data_key))
  // What an attempt before this one left half done.
  yield* sql`delete from export_piece where export_id = ${one.id}`
  yield* sql`update export set status = 'running' where id = ${one.id}`
  const writer = yield* makeWriter(org, one.id, dataKey)
  const identities = yield* IdentityQueries
  const vault = yield* Vault
  const found = one.canonical === null ? yield* identities.list(org) : [yield* identities.read(org, one.canonical)]
  yield* writer.lines("identities.jsonl", found)
  yield* events(org, one.canonical, writer)
  if (one.canonical === null) {
    const keys = yield* ApiKeys
    yield* writer.lines("api_keys.jsonl", yield* keys.list(org))
    const secrets = yield* vault.list({ org, identity: null })
    yield* writer.lines(
      "vault.jsonl",
      secrets.map((secret) => ({ identity: null, ...secret })),
    )
  }
  for (const identity of found) yield* belongings(org, identity, writer)
  const size = yield* writer.finish
  yield* sql`update export set status = 'ready', size = ${size} where id = ${one.id}`
})

const events = Effect.fnUntraced(function* (org: string, canonical: string | null, writer: Writer) {
  const queries = yield* EventQueries
  let cursor: string | undefined
  do {
    const { events: found, next_cursor }: Effect.Success<ReturnType<typeof queries.list>> = yield* queries.list(org, {
      limit: page,
      cursor,
      ...(canonical === null ? {} : { handle: canonical }),
    })
    yield* writer.lines("events.jsonl", found)
    cursor = next_cursor ?? undefined
  } while (cursor !== undefined)
})

const belongings = Effect.fnUntraced(function* (
  org: string,
  identity: { readonly id: IdentityId; readonly handle: string },
  writer: Writer,
) {
  const { id, handle } = identity
  const cards = yield* CardQueries
  const settings = yield* MailSettingsQueries
  const webhooks = yield* WebhookQueries
  const vault = yield* Vault
  const tagged = (values: ReadonlyArray<object>) => values.map((value) => ({ identity: handle, ...value }))
  const card = yield* Effect.option(cards.read(id))
  if (card._tag === "Some") yield* writer.lines("cards.jsonl", tagged([card.value.card]))
  yield* writer.lines("allowed_recipients.jsonl", tagged(yield* settings.recipients(id)))
  yield* writer.lines("webhooks.jsonl", tagged(yield* webhooks.list(id)))
  yield* writer.lines("vault.jsonl", tagged(yield* vault.list({ org, identity: id })))
  yield* mailbox(identity, writer)
})

/** `messages.jsonl`, and the originals as mboxrd (RFC 4155, with `From ` lines quoted reversibly). */
const mailbox = Effect.fnUntraced(function* (
  identity: { readonly id: IdentityId; readonly handle: string },
  writer: Writer,
) {
  const messages = yield* MessageQueries
  const member = `${identity.handle}.mbox`
  yield* writer.write(member, new Uint8Array(0))
  let after: string | undefined
  while (true) {
    const found: Effect.Success<ReturnType<typeof messages.oldest>> = yield* messages.oldest(identity.id, after, page)
    yield* writer.lines(
      "messages.jsonl",
      found.map((message) => ({ identity: identity.handle, ...message })),
    )
    for (const message of found) {
      const raw = yield* messages.raw(identity.id, message.id)
      const text = Buffer.from(raw)
        .toString("latin1")
        .replace(/\r\n/g, "\n")
        .replace(/^(>*From )/gm, ">$1")
      const from = `From ${message.from?.address ?? "MAILER-DAEMON"} ${asctime(message.received_at)}\n`
      yield* writer.write(member, Buffer.from(`${from}${text}${text.endsWith("\n") ? "" : "\n"}\n`, "latin1"))
    }
    if (found.length < page) return
    after = found.at(-1)!.id
  }
})

/** `Sat Nov 21 12:00:00 2026`, in UTC. */
const asctime = (at: Date) =>
  at.toUTCString().replace(/^(\w{3}), (\d{2}) (\w{3}) (\d{4}) ([\d:]{8}) GMT$/, "$1 $3 $2 $5 $4")

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const vault = yield* Vault
  const identities = yield* IdentityQueries

  /** An Identity Key sees what it could have asked for: exports of its own Identity. */
  const visible = (org: string, identityId: string | null) =>
    identityId === null
      ? sql`org_id = ${org} and expires_at > now()`
      : sql`org_id = ${org} and identity_id = ${identityId} and expires_at > now()`
  const columns = sql`id, handle, status, size, created_at, expires_at`
  const view = (row: Row): Export => {
    const id = toPublic("exp_", row.id)
    return {
      id,
      status: row.status,
      identity: row.handle,
      size: row.size === null ? null : Number(row.size),
      created_at: row.created_at,
      expires_at: row.expires_at,
      download_url: row.status === "ready" ? `/api/exports/${id}/archive` : null,
    }
  }
  const missing = new NotFound({ detail: "There is no such export." })

  const read = Effect.fn("Exports.read")(function* (org: string, identityId: string | null, id: string) {
    const uuid = fromPublic("exp_", id)
    const [row] =
      uuid === undefined
        ? []
        : yield* sql<Row>`select ${columns} from export where id = ${uuid} and ${visible(org, identityId)}`
    if (row === undefined) return yield* missing
    return { view: view(row), uuid: row.id }
  }, orUnavailable)

  /** Everything the session's account may take along of the Vault, values included. */
  const vaultValues = Effect.fnUntraced(function* (org: string) {
    const owned = yield* identities.list(org)
    const namespaces = [{ handle: null, identity: null }, ...owned.map(({ id, handle }) => ({ handle, identity: id }))]
    const lines: Array<string> = []
    for (const { handle, identity } of namespaces) {
      for (const { name } of yield* vault.list({ org, identity })) {
        const secret = yield* Effect.option(vault.value({ org, identity }, name, undefined))
        if (secret._tag === "Some") lines.push(`${JSON.stringify({ identity: handle, ...secret.value })}\n`)
      }
    }
    return new TextEncoder().encode(lines.join(""))
  })

  return {
    list: (org: string, identityId: string | null) =>
      orUnavailable(
        Effect.map(sql<Row>`select ${columns} from export where ${visible(org, identityId)} order by id desc`, (rows) =>
          rows.map(view),
        ),
      ),
    read: (org: string, identityId: string | null, id: string) =>
      Effect.map(read(org, identityId, id), (found) => found.view),

    /** The zip, made as it is read; `values` adds the Vault's values. */
    archive: Effect.fn("Exports.archive")(function* (
      org: string,
      identityId: string | null,
      id: string,
      values: boolean,
    ) {
      const found = yield* read(org, identityId, id)
      if (found.view.status !== "ready") return yield* new NotFound({ detail: "The export is not ready." })
      const [row] = yield* orUnavailable(sql<{ data_key: Uint8Array }>`select data_key from org where id = ${org}`)
      const dataKey = yield* Effect.orDie(sealing.openDataKey(org, row!.data_key))
      const pieces = yield* orUnavailable(sql<{ member: string; number: number; last: boolean }>`
        select member, number, number = max(number) over (partition by member) as last
        from export_piece where export_id = ${found.uuid} order by member, number`)
      const extra = values && found.view.identity === null ? yield* vaultValues(org) : undefined

      let out: Array<Uint8Array> = []
      const zip = new Zip((error, chunk) => {
        if (error !== null) throw error
        out.push(chunk)
      })
      const drain = () => {
        const made = out
        out = []
        return made
      }
      let entry: ZipDeflate | undefined
      const add = (member: string, first: boolean, last: boolean, bytes: Uint8Array) => {
        if (first || entry === undefined) {
          entry = new ZipDeflate(member)
          zip.add(entry)
        }
        entry.push(bytes, last)
        return drain()
      }
      const body = Stream.fromIterable(pieces).pipe(
        Stream.mapEffect(({ member, number, last }) =>
          Effect.gen(function* () {
            const [piece] = yield* sql<{ sealed: Uint8Array }>`
              select sealed from export_piece where export_id = ${found.uuid} and member = ${member} and number = ${number}`
            if (piece === undefined) return yield* Effect.die(new Error("the export went while it was read"))
            return add(
              member,
              number === 0,
              last,
              yield* sealing.open(dataKey, place(org, found.uuid, member, number), piece.sealed),
            )
          }),
        ),
      )
      const end = Stream.sync(() => {
        const made = extra === undefined ? [] : add("vault_values.jsonl", true, true, extra)
        zip.end()
        return [...made, ...drain()]
      })
      return Stream.concat(body, end).pipe(
        Stream.flatMap((chunks) => Stream.fromIterable(chunks)),
        Stream.orDie,
      )
    }),
  }
})

export class Exports extends Context.Service<Exports, Effect.Success<typeof make>>()("@svc/cluster/account/Exports") {
  static readonly layer = Layer.effect(Exports, make)
}
