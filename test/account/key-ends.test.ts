/** Expiry of keys by the test's clock: notifications, and the credential look-up. */
import { expect, layer } from "@effect/vitest"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import * as KeyExpiry from "@svc/cluster/account/KeyExpiry"
import { Writes } from "@svc/cluster/store/Database"
import { unlimited } from "@svc/domain/account/Scope"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Clock, Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { accountHolder, makeOrg, rows, storesLayer } from "../harness/Stores.ts"

const day = 86_400_000

layer(storesLayer)("an expiring key", (it) => {
  it.effect("raises an Event 7 days before, one day before and at its expiry, and is rejected afterwards", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const keys = yield* ApiKeys
      const lookup = yield* CredentialLookup
      const now = yield* Clock.currentTimeMillis
      const expiresAt = new Date(now + 10 * day)
      const rights = { scopes: unlimited, expiresAt, networks: null }
      const { key, api_key } = yield* keys.create(
        org,
        { id: yield* makeUuidV7, name: "ci", identity: null, rights },
        accountHolder,
      )
      const notify = Effect.gen(function* () {
        yield* KeyExpiry.notifyExpiring
        yield* KeyExpiry.notifyExpiring
        const events = yield* rows(
          (sql) => sql<{ type: string; data: unknown }>`
            select type, data from event where org_id = ${org} and type like 'api_key.exp%' order by seq`,
        )
        return events.map(({ type }) => type)
      })
      const use = lookup.resolve(Redacted.make(key))
      expect(yield* notify).toEqual([])
      yield* TestClock.adjust("3 days")
      expect(yield* notify).toEqual(["api_key.expiring"])
      yield* TestClock.adjust("6 days")
      // Another process that notifies at the same time passes over the key.
      const sql = yield* Writes
      const held = sql`select 1 from api_key where id = ${api_key.id} for update`
      expect(yield* sql.withTransaction(Effect.andThen(held, notify))).toEqual(["api_key.expiring"])
      expect(yield* notify).toEqual(["api_key.expiring", "api_key.expiring"])
      yield* TestClock.adjust(day - 1)
      expect(yield* use).toMatchObject({ credentialId: api_key.id, expiresAt })
      yield* TestClock.adjust(1)
      expect(yield* Effect.flip(use)).toMatchObject({ code: "key_expired" })
      expect(yield* notify).toEqual(["api_key.expiring", "api_key.expiring", "api_key.expired"])
      const [last] = yield* rows(
        (sql) => sql<{ data: unknown }>`select data from event where org_id = ${org} and type = 'api_key.expired'`,
      )
      expect(last?.data).toEqual({
        key_id: api_key.id,
        name: "ci",
        scope: "org",
        identity_id: null,
        handle: null,
        expires_at: expiresAt.toISOString(),
      })
    }),
  )

  it.effect("raises no Event after it was revoked", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const keys = yield* ApiKeys
      const expiresAt = new Date((yield* Clock.currentTimeMillis) + 8 * day)
      const rights = { scopes: unlimited, expiresAt, networks: null }
      const { api_key } = yield* keys.create(
        org,
        { id: yield* makeUuidV7, name: "ci", identity: null, rights },
        accountHolder,
      )
      yield* keys.revoke(org, api_key.id, accountHolder)
      yield* TestClock.adjust("9 days")
      yield* KeyExpiry.notifyExpiring
      expect(
        yield* rows((sql) => sql`select type from event where org_id = ${org} and type like 'api_key.exp%'`),
      ).toEqual([])
    }),
  )

  it.effect("raises only the last Event after a rotation, and its successor keeps its own lifetime", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const keys = yield* ApiKeys
      const now = yield* Clock.currentTimeMillis
      const rights = { scopes: unlimited, expiresAt: new Date(now + 30 * day), networks: null }
      const { key, api_key } = yield* keys.create(
        org,
        { id: yield* makeUuidV7, name: "ci", identity: null, rights },
        accountHolder,
      )
      const maker = yield* (yield* CredentialLookup).resolve(Redacted.make(key))
      yield* TestClock.adjust("10 days")
      const session = { ...maker, expiresAt: null }
      const { api_key: next } = yield* keys.rotate(session, api_key.id, yield* makeUuidV7, 7 * 86_400, accountHolder)
      expect(next.expires_at).toEqual(new Date(now + 40 * day))
      expect(yield* keys.read(org, api_key.id)).toMatchObject({
        replaced_by: next.id,
        expires_at: new Date(now + 17 * day),
      })
      // A key that expires before the overlap ends keeps its expiry.
      const soon = new Date(now + 12 * day)
      const short = yield* keys.create(
        org,
        { id: yield* makeUuidV7, name: "short", identity: null, rights: { ...rights, expiresAt: soon } },
        accountHolder,
      )
      yield* keys.rotate(session, short.api_key.id, yield* makeUuidV7, 7 * 86_400, accountHolder)
      expect((yield* keys.read(org, short.api_key.id)).expires_at).toEqual(soon)
      // The key would otherwise outlast its creator.
      const { api_key: own } = yield* keys.rotate(maker, next.id, yield* makeUuidV7, 0, accountHolder)
      expect(own.expires_at).toEqual(new Date(now + 30 * day))
      yield* TestClock.adjust("7 days")
      const ended = yield* Effect.flip(keys.rotate(session, short.api_key.id, yield* makeUuidV7, 0, accountHolder))
      expect(ended).toMatchObject({ code: "key_replaced" })
      const brief = yield* keys.create(
        org,
        {
          id: yield* makeUuidV7,
          name: "brief",
          identity: null,
          rights: { ...rights, expiresAt: new Date((yield* Clock.currentTimeMillis) + day) },
        },
        accountHolder,
      )
      yield* TestClock.adjust(day)
      const expired = yield* Effect.flip(keys.rotate(session, brief.api_key.id, yield* makeUuidV7, 0, accountHolder))
      expect(expired).toMatchObject({ code: "conflict", detail: expect.stringContaining("expired") })
      yield* KeyExpiry.notifyExpiring
      const events = yield* rows(
        (sql) => sql<{ type: string; key: string }>`
          select type, data ->> 'key_id' as key from event
          where org_id = ${org} and type like 'api_key.exp%' order by seq`,
      )
      expect(events).toContainEqual({ type: "api_key.expired", key: api_key.id })
      expect(events).not.toContainEqual({ type: "api_key.expiring", key: api_key.id })
    }),
  )
})
