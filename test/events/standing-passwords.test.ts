/** A session ends when the password it was opened with is no longer valid, and no other session does. */
import { expect, layer } from "@effect/vitest"
import { StandingPasswords } from "@svc/cluster/credentials/StandingPasswords"
import { Unhurried } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Layer } from "effect"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"

layer(StandingPasswords.layer.pipe(Layer.provideMerge(actors())))("a session", (it) => {
  it.effect("with a former password ends, and sessions with the present one and of others continue", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const sql = yield* Unhurried
      const passwords = yield* StandingPasswords
      const verifierOf = Effect.fnUntraced(function* (identityId: string) {
        const [row] = yield* sql<{ verifier: Uint8Array }>`
          select imap_verifier as verifier from mailbox where identity_id = ${identityId}`
        return row!.verifier
      })
      const ended: Array<string> = []
      const watch = Effect.fnUntraced(function* (name: string, identityId: string) {
        const password = { identityId, verifier: yield* verifierOf(identityId) }
        yield* passwords.watch(password, () => void ended.push(name))
      })
      const [ada, bob] = [yield* makeIdentity(org, "ada"), yield* makeIdentity(org, "bob")]
      yield* watch("ada, former", ada.id)
      yield* watch("bob", bob.id)
      yield* watch("bob, second", bob.id)
      yield* Effect.scoped(watch("bob, closed", bob.id))
      yield* sql`update mailbox set imap_verifier = sha256(imap_verifier) where identity_id = ${ada.id}`
      yield* watch("ada, present", ada.id)
      const known = Effect.sync(() => new Set(ended))
      yield* waitUntil(known, ({ size }) => size > 0, Timing.credentialCheck)
      yield* waitUntil(
        Effect.sync(() => ended.length),
        (count) => count > 1,
        Timing.credentialCheck,
      )
      expect(new Set(ended)).toEqual(new Set(["ada, former"]))
      yield* sql`update identity set status = 'deleting' where id = ${bob.id}`
      yield* waitUntil(known, ({ size }) => size > 1, Timing.credentialCheck)
      expect(new Set(ended)).toEqual(new Set(["ada, former", "bob", "bob, second"]))
      // The deletion of an account ends its sessions before it reaches their Identities.
      yield* sql`update org set status = 'deleting' where id = ${org}`
      yield* waitUntil(known, ({ size }) => size > 3, Timing.credentialCheck)
    }),
  )
})
