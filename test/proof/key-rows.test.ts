/** Keys of Identities in the store: what a rotation changes, and until when a key is published. */
import { ask } from "@svc/cluster/actor/Ask"
import { SigningKeys } from "@svc/cluster/proof/SigningKeys"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { registeredAtMost } from "@svc/domain/proof/SigningKey"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { rows } from "../harness/Stores.ts"

const prepared = Effect.gen(function* () {
  const [org_id, handle, signing] = [yield* makeOrg, newHandle("keys"), yield* SigningKeys]
  const { id, actor } = yield* makeIdentity(org_id, handle)
  yield* signing.ensured({ id, orgId: org_id })
  const kids = Effect.map(signing.list(id), (keys) => keys.map(({ kid }) => kid))
  const jwk = { kty: "OKP", crv: "Ed25519", x: "AA", alg: "EdDSA", use: "sig" } as const
  const add = (kid: string, registered_by: string | null = null, name: string | null = null) =>
    ask(actor.AddSigningKey({ org_id, kid, jwk: { ...jwk, kid }, name, registered_by }))
  const eventsOf = (type: string) =>
    Effect.map(
      rows<{ data: Record<string, unknown> }>(
        (sql) => sql`select data from event where identity_id = ${id} and type = ${type} order by seq`,
      ),
      (events) => events.map(({ data }) => data),
    )
  return { org_id, id, signing, kids, add, eventsOf, rotate: ask(actor.RotateSigningKey({ org_id })), actor }
})

layer(actors(), { timeout: "60 seconds" })("A rotation", (it) => {
  it.effect("retires the current pair only, and forgets pairs that are published no longer", () =>
    Effect.gen(function* () {
      const { id, kids, add, eventsOf, rotate } = yield* prepared
      const [first] = yield* kids
      yield* TestClock.adjust("1 second")
      yield* add("agent's")
      const stored = rows<{ kid: string; retired_at: Date | null; published_until: Date | null; can_sign: boolean }>(
        (sql) => sql`
          select kid, retired_at, published_until, sealed is not null as can_sign from signing_key
          where identity_id = ${id} and origin = 'service' order by created_at`,
      )
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* rotate
      const until = new Date(at.getTime() + Timing.signingKeyOverlapMillis)
      const retired = { kid: first, retired_at: at, published_until: until, can_sign: false }
      const [, second] = yield* stored
      expect(yield* stored).toEqual([
        retired,
        { kid: second!.kid, retired_at: null, published_until: null, can_sign: true },
      ])
      yield* TestClock.adjust("1 second")
      yield* rotate
      const third = yield* stored
      expect(third).toHaveLength(3)
      expect(third[0]).toEqual(retired)
      expect(yield* eventsOf("proof.key_rotated")).toEqual([
        { kid: second!.kid, replaces: first },
        { kid: third[2]!.kid, replaces: second!.kid },
      ])
      const agents = rows(
        (sql) => sql`
        select retired_at, published_until from signing_key where identity_id = ${id} and origin = 'agent'`,
      )
      expect(yield* agents).toEqual([{ retired_at: null, published_until: null }])
      // The first pair ends exactly now, the second a second later.
      yield* TestClock.setTime(until.getTime() - 1)
      expect(yield* kids).toContain(first)
      yield* TestClock.adjust("1 milli")
      expect((yield* kids).toSorted()).toEqual([second!.kid, third[2]!.kid, "agent's"].toSorted())
      yield* rotate
      expect((yield* stored).map(({ kid }) => kid).slice(0, 2)).toEqual([second!.kid, third[2]!.kid])
      expect(yield* agents).toHaveLength(1)
    }),
  )
})

layer(actors(), { timeout: "60 seconds" })("An account that is being deleted", (it) => {
  it.effect("gets no pair", () =>
    Effect.gen(function* () {
      const [org, signing] = [yield* makeOrg, yield* SigningKeys]
      const { id } = yield* makeIdentity(org, newHandle("keys"))
      yield* (yield* Writes)`update org set status = 'deleting' where id = ${org}`
      expect(yield* signing.ensured({ id, orgId: org })).toEqual([])
    }),
  )
})

layer(actors(), { timeout: "60 seconds" })("A registered key", (it) => {
  it.effect("is published until its API key expires, takes no place then, and can be registered again", () =>
    Effect.gen(function* () {
      const { org_id, kids, add, id, eventsOf } = yield* prepared
      const [sql, apiKey] = [yield* Writes, yield* makeUuidV7]
      const now = yield* Clock.currentTimeMillis
      yield* sql`
        insert into api_key (id, org_id, name, token_hash, token_prefix, scopes, created_at, expires_at)
        values (${apiKey}, ${org_id}, 'brief', ${Buffer.from(apiKey)}, 'svc_', '*', now(), ${new Date(now + 60_000)})`
      yield* add("a", apiKey, "first")
      yield* add("b", apiKey)
      yield* TestClock.adjust(59_999)
      expect(yield* kids).toEqual(expect.arrayContaining(["a", "b"]))
      expect(yield* Effect.flip(add("a"))).toMatchObject({ code: "conflict" })
      yield* TestClock.adjust("1 milli")
      expect(yield* kids).toHaveLength(1)
      yield* add("a", null, "again")
      expect(yield* kids).toContain("a")
      const left = yield* rows(
        (sql) => sql`
        select kid, name, registered_by, created_at from signing_key where identity_id = ${id} and origin = 'agent'`,
      )
      expect(left).toEqual([{ kid: "a", name: "again", registered_by: null, created_at: new Date(now + 60_000) }])
      expect(yield* eventsOf("proof.key_added")).toEqual([
        { kid: "a", name: "first" },
        { kid: "b", name: null },
        { kid: "a", name: "again" },
      ])
    }),
  )

  it.effect("is one of at most 20 of an Identity, beside the pairs of the service", () =>
    Effect.gen(function* () {
      const { add, id, rotate, kids } = yield* prepared
      yield* rotate
      yield* (yield* Writes)`
        insert into signing_key (identity_id, kid, origin, jwk, created_at)
        select ${id}::uuid, 'k' || n, 'agent', '{}', now() from generate_series(2, ${registeredAtMost}::int) n`
      yield* add("last")
      expect(yield* Effect.flip(add("one more"))).toMatchObject({ code: "conflict" })
      expect(yield* kids).toHaveLength(2 + registeredAtMost)
    }),
  )

  it.effect("and a retired pair are removed one at a time, with an Event each", () =>
    Effect.gen(function* () {
      const { org_id, kids, add, rotate, eventsOf, actor } = yield* prepared
      const [retired] = yield* kids
      yield* rotate
      const current = (yield* kids).find((kid) => kid !== retired)!
      yield* add("a", null, "laptop")
      yield* add("b")
      const remove = (kid: string) => ask(actor.RemoveSigningKey({ org_id, kid }))
      expect(yield* Effect.flip(remove(current))).toMatchObject({ code: "conflict" })
      yield* remove("a")
      yield* remove(retired!)
      expect(yield* Effect.flip(remove("a"))).toMatchObject({ code: "not_found" })
      expect((yield* kids).toSorted()).toEqual([current, "b"].toSorted())
      expect(yield* eventsOf("proof.key_removed")).toEqual([
        { kid: "a", name: "laptop" },
        { kid: retired, name: null },
      ])
    }),
  )
})
