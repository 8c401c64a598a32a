/** Reads Identities from the store, where every commit precedes its reply. */
import {
  type AddressBook,
  Addresses,
  cardUrl,
  email,
  profileUrl,
  tunnelHostname,
  tunnelUrl,
} from "@svc/domain/Addresses"
import type { Identity, Saga, ShowOnceSecrets } from "@svc/domain/identity/Identity"
import type { IdentityId, IdentityRef, IdentityStatus } from "@svc/domain/IdentityRef"
import { NotFound } from "@svc/domain/problems/Problem"
import type { PageRequest } from "@svc/domain/Paging"
import { Clock, Context, Effect, Layer } from "effect"
import { keyView } from "../credentials/KeyView.ts"
import { identityKeyPlace, imapPasswordPlace } from "../credentials/ShowOnce.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import * as Batcher from "../store/Batcher.ts"
import { orUnavailable, Reads, together } from "../store/Database.ts"

interface Row {
  readonly id: IdentityId
  readonly handle: string
  readonly status: IdentityStatus
  readonly saga: typeof Saga.Encoded
  readonly ready_at: Date | null
  readonly created_at: Date
  readonly port: number | null
  readonly connected: boolean
  readonly first: boolean
  readonly signed_up_at: Date
}

const dateOf = (text: string | null) => (text === null ? null : new Date(text))

/** Returns the checklist as the actor stored it. The response's schema validates it once, when it is sent. */
const sagaOf = (stored: typeof Saga.Encoded): Saga => ({
  ...stored,
  steps: stored.steps.map((step) => ({ ...step, finished_at: dateOf(step.finished_at) })),
  started_at: new Date(stored.started_at),
  finished_at: dateOf(stored.finished_at),
})

const view = (book: AddressBook, row: Row): Identity & Pick<IdentityRef, "id"> => ({
  id: row.id,
  handle: row.handle,
  status: row.status,
  email: email(book, row.handle),
  profile_url: profileUrl(book, row.handle),
  card_url: cardUrl(book, row.handle),
  tunnel: {
    hostname: tunnelHostname(book, row.handle),
    port: row.port,
    url: tunnelUrl(book, row.handle),
    connected: row.connected,
  },
  saga: sagaOf(row.saga),
  onboarding:
    row.first && row.ready_at !== null
      ? {
          signed_up_at: row.signed_up_at,
          ready_at: row.ready_at,
          seconds: (row.ready_at.getTime() - row.signed_up_at.getTime()) / 1000,
        }
      : null,
  created_at: row.created_at,
})

interface SecretsRow {
  readonly id: string
  readonly handle: string
  readonly data_key: Uint8Array
  readonly identity_key: Uint8Array | null
  readonly imap_password: Uint8Array | null
  readonly expires_at: Date | null
  readonly key_id: string | null
  readonly key_name: string | null
  readonly token_prefix: string | null
  readonly key_created_at: Date | null
  readonly last_used_at: Date | null
  readonly last_used_address: string | null
  readonly scopes: string | null
  readonly networks: string | null
  readonly key_expires_at: Date | null
  readonly replaced_by: string | null
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const book = yield* Addresses
  const sealing = yield* Sealing

  const columns = sql`i.id, i.handle, i.status, i.saga, i.ready_at, i.created_at, i.tunnel_connected as connected, p.port,
    coalesce(o.first_ready_identity = i.id, false) as first, o.created_at as signed_up_at
    from identity i join org o on o.id = i.org_id left join tunnel_port p on p.identity_id = i.id`
  const missing = Effect.fail(new NotFound({ detail: "The Identity does not exist." }))

  /** Concurrent reads share one select. */
  const row = yield* together((wanted: ReadonlyArray<{ readonly org: string; readonly canonical: string }>) =>
    Effect.map(
      sql<Row & { readonly requested: number }>`
        select requested.n::int as requested, ${columns}
        join unnest(${wanted.map(({ org }) => org)}::uuid[], ${wanted.map((one) => one.canonical)}::text[])
          with ordinality as requested (org_id, canonical, n) on i.canonical = requested.canonical and i.org_id = requested.org_id`,
      Batcher.inOrder(wanted),
    ),
  )

  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

  const isTaken = yield* together((names: ReadonlyArray<string>) =>
    Effect.map(
      sql<{ canonical: string }>`
        select canonical from unnest(${names}::text[]) as requested (canonical) join handle using (canonical)`,
      (rows) => {
        const held = new Set(rows.map(({ canonical }) => canonical))
        return names.map((name) => held.has(name))
      },
    ),
  )

  return {
    /** Returns the Org's Identities, oldest first; only those in `within` if it is given. */
    list: (org: string, request: PageRequest, within: ReadonlyArray<IdentityRef> | null = null) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `identities/${org}`,
          request,
          (behind, atMost) => sql<Row>`
            select ${columns} where i.org_id = ${org}
            ${within === null ? sql`` : sql`and i.id = any(${within.map(({ id }) => id)}::uuid[])`} ${behind === undefined ? sql`` : sql`and i.id > ${behind}::uuid`}
            order by i.id limit ${atMost}`,
          ({ id }) => id,
          (row) => view(book, row),
        ),
      ),
    read: (org: string, canonical: string) =>
      Effect.flatMap(row({ org, canonical }), (found) =>
        found === undefined ? missing : Effect.succeed(view(book, found)),
      ),
    /** Returns what authorization needs of an Identity of the Org. */
    find: (org: string, canonical: string) =>
      orUnavailable(
        Effect.map(
          sql<IdentityRef>`
            select id, handle, canonical, status from identity where canonical = ${canonical} and org_id = ${org}`,
          ([row]) => row,
        ),
      ),
    /** Returns whether the Handle was ever given out. */
    isTaken,
    /**
     * Returns the secrets that were not acknowledged yet, or nothing if none is left (interface.md "Show-once
     * secrets").
     */
    secrets: Effect.fn("IdentityQueries.secrets")(
      function* (org: string, canonical: string) {
        const [row] = yield* sql<SecretsRow>`
        select i.id, i.handle, o.data_key, s.identity_key, s.imap_password, s.expires_at,
               k.id as key_id, k.name as key_name, k.token_prefix, k.created_at as key_created_at, k.last_used_at,
               k.last_used_address, k.scopes, k.networks, k.expires_at as key_expires_at, k.replaced_by
        from identity i join org o on o.id = i.org_id
        left join show_once s on s.identity_id = i.id and i.status = 'ready'
        left join api_key k on k.id = s.key_id
        where i.canonical = ${canonical} and i.org_id = ${org}`
        if (row === undefined) return yield* missing
        const now = yield* Clock.currentTimeMillis
        const none: ShowOnceSecrets = {}
        if (row.expires_at === null || row.expires_at.getTime() <= now) return none
        if (row.identity_key === null || row.imap_password === null || row.key_id === null) return none
        const owner = { id: row.id, orgId: org }
        const dataKey = yield* sealing.openDataKey(org, row.data_key)
        const login = {
          username: email(book, row.handle),
          password: text(yield* sealing.open(dataKey, imapPasswordPlace(owner), row.imap_password)),
        }
        const secrets: ShowOnceSecrets = {
          identity_key: text(yield* sealing.open(dataKey, identityKeyPlace(owner), row.identity_key)),
          api_key: keyView({
            id: row.key_id,
            name: row.key_name!,
            identity_id: row.id,
            token_prefix: row.token_prefix!,
            scopes: row.scopes!,
            networks: row.networks,
            created_at: row.key_created_at!,
            expires_at: row.key_expires_at,
            last_used_at: row.last_used_at,
            last_used_address: row.last_used_address,
            replaced_by: row.replaced_by,
            revoked_at: null,
          }),
          imap: { ...book.imap, ...login },
          smtp: { ...book.submission, ...login },
          expires_at: row.expires_at,
        }
        return secrets
      },
      Effect.catchTag("CannotOpen", Effect.die),
      orUnavailable,
    ),
  }
})

export class IdentityQueries extends Context.Service<IdentityQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/identity/IdentityQueries",
) {
  static readonly layer = Layer.effect(IdentityQueries, make)
}
