/** Interrupted creation and revocation of keys: no partial state, and no secret is shown twice (docs/crash-matrix.md). */
import { expect, layer } from "@effect/vitest"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { unlimited } from "@svc/domain/account/Scope"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Redacted } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { interruptAtLock } from "../harness/InterruptedStatement.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const rights = { scopes: unlimited, expiresAt: null, networks: null }
const unavailable = { _tag: "Failure", failure: { code: "unavailable" } }

/** The active keys of the Org, and the Events about keys. */
const known = Effect.fnUntraced(function* (org: string) {
  const keys = yield* rows<{ id: string; ends: boolean }>(
    (sql) => sql`
      select id, expires_at is not null as ends from api_key where org_id = ${org} and revoked_at is null order by id`,
  )
  const events = yield* rows<{ type: string }>(
    (sql) => sql`select type from event where org_id = ${org} and type like 'api_key.%' order by seq`,
  )
  return { keys, told: events.map(({ type }) => type) }
})

layer(actors(), { timeout: "60 seconds" })("Key", (it) => {
  const prepared = Effect.gen(function* () {
    const org = yield* makeOrg
    const keys = yield* ApiKeys
    const lookup = yield* CredentialLookup
    const wanted = { id: yield* makeUuidV7, name: "ci", identity: null, rights }
    return {
      org,
      keys,
      wanted,
      create: keys.create(org, wanted, accountHolder),
      resolve: (key: string) => lookup.resolve(Redacted.make(key)),
    }
  })

  it.effect("is absent if its creation dies before the commit, and a repeat creates it", () =>
    Effect.gen(function* () {
      const { org, wanted, create, resolve } = yield* prepared
      expect(yield* interruptAtLock(create)).toMatchObject(unavailable)
      expect(yield* known(org)).toEqual({ keys: [], told: [] })
      const { key } = yield* create
      expect(yield* resolve(key)).toMatchObject({ credentialId: wanted.id })
      expect(yield* known(org)).toEqual({ keys: [{ id: wanted.id, ends: false }], told: ["api_key.created"] })
    }),
  )

  it.effect("whose response was lost is neither shown nor created again by a repeat", () =>
    Effect.gen(function* () {
      const { org, keys, wanted, create, resolve } = yield* prepared
      const { key } = yield* create
      expect(yield* Effect.flip(create)).toMatchObject({ code: "conflict" })
      expect(yield* known(org)).toEqual({ keys: [{ id: wanted.id, ends: false }], told: ["api_key.created"] })
      // The caller knows the id and revokes the key, which ends the lost secret.
      yield* keys.revoke(org, wanted.id, accountHolder)
      expect(yield* Effect.flip(resolve(key))).toMatchObject({ code: "unauthenticated" })
      expect(yield* Effect.flip(create)).toMatchObject({ code: "conflict" })
      expect((yield* known(org)).keys).toEqual([])
    }),
  )

  it.effect("is replaced in one commit: the old key is valid before it, one successor exists after it", () =>
    Effect.gen(function* () {
      const { org, keys, wanted, create, resolve } = yield* prepared
      const maker = yield* resolve((yield* create).key)
      const id = yield* makeUuidV7
      const rotate = keys.rotate(maker, wanted.id, id, 60, accountHolder)
      expect(yield* interruptAtLock(rotate)).toMatchObject(unavailable)
      expect(yield* known(org)).toEqual({ keys: [{ id: wanted.id, ends: false }], told: ["api_key.created"] })
      yield* rotate
      const after = yield* known(org)
      expect(after.keys).toEqual([
        { id: wanted.id, ends: true },
        { id, ends: false },
      ])
      expect(yield* Effect.flip(rotate)).toMatchObject({ code: "conflict" })
      // Another request to replace it returns the successor.
      const other = keys.rotate(maker, wanted.id, yield* makeUuidV7, 60, accountHolder)
      expect(yield* Effect.flip(other)).toMatchObject({ code: "key_replaced" })
      expect(yield* known(org)).toEqual(after)
    }),
  )

  it.effect("whose revocation dies before the commit remains valid until the retry", () =>
    Effect.gen(function* () {
      const { org, keys, wanted, create, resolve } = yield* prepared
      const { key } = yield* create
      const revoke = keys.revoke(org, wanted.id, accountHolder)
      expect(yield* interruptAtLock(revoke)).toMatchObject(unavailable)
      expect(yield* resolve(key)).toMatchObject({ credentialId: wanted.id })
      yield* revoke
      expect(yield* Effect.flip(resolve(key))).toMatchObject({ code: "unauthenticated" })
      expect((yield* known(org)).told).toEqual(["api_key.created", "api_key.revoked"])
    }),
  )

  it.effect("of an Identity is replaced in one commit: before it, the old key and its secrets are unchanged", () =>
    Effect.gen(function* () {
      const { org, resolve } = yield* prepared
      const { id, actor } = yield* makeIdentity(org, "ada")
      const queries = yield* IdentityQueries
      const shown = queries.secrets(org, "ada")
      const former = yield* shown
      const command = yield* makeUuidV7
      const rotate = ask(actor.RotateKey({ org_id: org }, onBehalfOf(accountHolder, command)))
      const verifier = rows((sql) => sql`select imap_verifier from mailbox where identity_id = ${id}`)
      const before = yield* verifier
      expect(yield* interruptAtLock(rotate)).toMatchObject(unavailable)
      expect(yield* shown).toEqual(former)
      expect(yield* verifier).toEqual(before)
      expect(yield* resolve(former.identity_key!)).toMatchObject({ kind: "identity_key" })
      yield* rotate
      expect(yield* Effect.flip(resolve(former.identity_key!))).toMatchObject({ code: "unauthenticated" })
      const present = yield* shown
      expect(yield* resolve(present.identity_key!)).toMatchObject({ kind: "identity_key" })
      expect((yield* known(org)).told.toSorted()).toEqual(["api_key.created", "api_key.created", "api_key.revoked"])
    }),
  )
})
