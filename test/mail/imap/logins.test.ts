/** Logins of mail clients: which credentials open which Mailbox, and the throttling of failures by address and by Mailbox. */
import { createHash } from "node:crypto"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { imapVerifierPlace } from "@svc/cluster/credentials/ShowOnce"
import { StandingPasswords } from "@svc/cluster/credentials/StandingPasswords"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Writes } from "@svc/cluster/store/Database"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { networksOf } from "@svc/domain/account/Networks"
import { unlimited } from "@svc/domain/account/Scope"
import { make as makeToken } from "@svc/domain/account/Token"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Unauthenticated, Unavailable } from "@svc/domain/problems/Problem"
import * as Logins from "@svc/mail-gateway/mail/imap/server/Logins"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { foundation, makeOrg } from "../../harness/Stores.ts"

/** The refused logins that their owners see in the audit log. */
const turnedAway: Array<string> = []

const loginsWith = (resolve: CredentialLookup["Service"]["resolve"]) =>
  Layer.fresh(Logins.Logins.layer({ mailDomain: "mail.localhost" })).pipe(
    Layer.provide([
      Layer.mock(CredentialLookup, { resolve }),
      Layer.mock(Audit, { record: () => Effect.void, kept: () => {}, used: () => {} }),
      Layer.mock(RefusedCredentials, {
        turnedAway: (_, { action, code }) => Effect.sync(() => void turnedAway.push(`${action} ${code}`)),
      }),
      Layer.mock(StandingCredentials, {}),
      Layer.mock(StandingPasswords, {}),
    ]),
    Layer.provideMerge(foundation),
    Layer.orDie,
  )

/** Rejects every key without a database, so that only the throttle takes time. */
const logins = loginsWith(() => Effect.fail(new Unauthenticated({ detail: "no" })))

const key = Redacted.make(makeToken("identity_key", new Uint8Array(32)))

/** Fails once and returns the delay in milliseconds. */
const refusedAfter = Effect.fnUntraced(function* (mailbox: string, address: string) {
  const { judge } = yield* Logins.Logins
  const tried = yield* Effect.forkChild(Effect.flip(judge(mailbox, key, address, Logins.imapPurpose)))
  for (let waited = 0; ; waited += 50) {
    for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
    if (tried.pollUnsafe() !== undefined) {
      expect(yield* Fiber.join(tried)).toBeInstanceOf(Logins.LoginRefused)
      return waited
    }
    yield* TestClock.adjust(50)
  }
})

const failures = (count: number, mailbox: (n: number) => string, address: (n: number) => string) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => refusedAfter(mailbox(n), address(n)),
  )

describe("failed logins", () => {
  it.effect("are not delayed twice, then by 250 ms more each time up to 8 s, per address", () =>
    Effect.gen(function* () {
      const waits = yield* failures(
        36,
        (n) => `mailbox${n}`,
        () => "192.0.2.1",
      )
      expect(waits.slice(0, 5)).toEqual([0, 0, 250, 500, 750])
      expect(waits.slice(-3)).toEqual([8_000, 8_000, 8_000])
      expect(yield* refusedAfter("another", "198.51.100.1")).toBe(0)
    }).pipe(Effect.provide(logins)),
  )

  it.effect("are counted per network of an IPv6 client, which has many addresses", () =>
    Effect.gen(function* () {
      const waits = yield* failures(
        4,
        (n) => `mailbox${n}`,
        (n) => `2001:db8::${n}`,
      )
      expect(waits).toEqual([0, 0, 250, 500])
    }).pipe(Effect.provide(logins)),
  )

  it.effect("are also counted per Mailbox, for any address and any spelling of the name", () =>
    Effect.gen(function* () {
      const spellings = ["ada", "Ada", "a-da@mail.localhost", "ADA@MAIL.LOCALHOST"]
      const waits = yield* failures(
        4,
        (n) => spellings[n]!,
        (n) => `192.0.${n}.1`,
      )
      expect(waits).toEqual([0, 0, 250, 500])
      expect(yield* refusedAfter("grace", "192.0.100.1")).toBe(0)
    }).pipe(Effect.provide(logins)),
  )

  it.effect("are forgotten after ten minutes and not earlier", () =>
    Effect.gen(function* () {
      const address = () => "192.0.2.1"
      yield* failures(2, () => "ada", address)
      yield* TestClock.adjust("10 minutes")
      expect(yield* refusedAfter("ada", address())).toBe(250)
      yield* TestClock.adjust("10 minutes")
      expect(yield* refusedAfter("ada", address())).toBe(0)
    }).pipe(Effect.provide(logins)),
  )
})

describe("a login with an Identity Key", () => {
  const ada = { id: "i", handle: "a-da", canonical: "ada", status: "ready" }
  // The login reads only these members of the caller.
  const caller = {
    kind: "identity_key",
    org: { id: "o" },
    credentialId: "k",
    scopes: unlimited,
    identities: [ada],
    networks: networksOf("192.0.2.0/24"),
  } as unknown as CallerInfo
  const login = (user: string | undefined, address: string) =>
    Effect.flatMap(Logins.Logins, ({ judge }) =>
      Effect.match(judge(user, key, address, Logins.imapPurpose), {
        onFailure: () => "refused",
        onSuccess: ({ canonical }) => canonical,
      }),
    )

  it.effect("opens the Mailbox of the key, if it names no other one", () =>
    Effect.gen(function* () {
      for (const user of [undefined, "a-da", "ADA@mail.localhost"])
        expect([user, yield* login(user, "192.0.2.1")]).toEqual([user, "ada"])
      for (const user of ["grace", "ada@other.example"])
        expect([user, yield* login(user, "192.0.2.1")]).toEqual([user, "refused"])
    }).pipe(Effect.provide(loginsWith(() => Effect.succeed(caller)))),
  )

  it.effect("is refused outside the networks of the key", () =>
    Effect.gen(function* () {
      expect(yield* login("ada", "192.0.2.255")).toBe("ada")
      turnedAway.length = 0
      expect(yield* login("ada", "192.0.3.0")).toBe("refused")
      expect(turnedAway).toEqual(["imap.login unauthenticated"])
    }).pipe(Effect.provide(loginsWith(() => Effect.succeed(caller)))),
  )

  const refusedKeys = {
    "an unknown key": Effect.fail({ _tag: "unauthenticated" }),
    "an expired key": Effect.fail({ _tag: "key_expired" }),
    "the key of a revoked grant": Effect.fail({ _tag: "grant_revoked" }),
    "a key of an account that is being deleted": Effect.fail({ _tag: "account_deleting" }),
    "a key of another kind": Effect.succeed({ ...caller, kind: "admin_key" }),
    "a key without the scope": Effect.succeed({ ...caller, scopes: { all: false, held: new Set(["mail:read"]) } }),
    "a key of an Identity that is not ready": Effect.succeed({
      ...caller,
      identities: [{ ...ada, status: "provisioning" }],
    }),
    "a key of several Identities": Effect.succeed({ ...caller, identities: [ada, { ...ada, id: "j" }] }),
  }
  it.effect.each(Object.entries(refusedKeys))("is refused for %s", ([, resolved]) =>
    Effect.gen(function* () {
      expect(yield* login("ada", "192.0.2.1")).toBe("refused")
    }).pipe(Effect.provide(loginsWith(() => resolved as never))),
  )

  it.effect("that cannot be checked is neither refused nor counted", () => {
    const down = new Unavailable({ detail: "down", retry_after_seconds: 1 })
    let isDown = true
    const resolve = () => (isDown ? Effect.fail(down) : Effect.fail(new Unauthenticated({ detail: "no" })))
    return Effect.gen(function* () {
      const { judge } = yield* Logins.Logins
      for (let n = 0; n < 5; n++) {
        expect(yield* Effect.flip(judge("ada", key, "192.0.2.1", Logins.imapPurpose))).toBe(down)
      }
      isDown = false
      expect(yield* refusedAfter("ada", "192.0.2.1")).toBe(0)
    }).pipe(Effect.provide(loginsWith(resolve as never)))
  })
})

describe("a login with a password", () => {
  const password = "correct-horse"

  /** Creates a Mailbox with this password; its Identity is ready. */
  const makeMailbox = Effect.fnUntraced(function* (handle: string) {
    const sql = yield* Writes
    const sealing = yield* Sealing
    const [org, id] = [yield* makeOrg, yield* makeUuidV7]
    const [row] = yield* sql<{ data_key: Uint8Array }>`select data_key from org where id = ${org}`
    const verifier = yield* sealing.seal(
      yield* sealing.openDataKey(org, row!.data_key),
      imapVerifierPlace({ id, orgId: org }),
      createHash("sha256").update(password).digest(),
    )
    yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${handle}, ${handle}, ${org}, now())`
    yield* sql`
      insert into identity (id, canonical, handle, org_id, status, saga, created_at)
      values (${id}, ${handle}, ${handle}, ${org}, 'ready', '{}', now())`
    yield* sql`
      insert into mailbox (identity_id, uid_validity, imap_verifier, created_at) values (${id}, 1, ${verifier}, now())`
    return { org, id }
  })

  it.effect("opens the Mailbox of its user, while the Identity is ready and the account is active", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [ada, grace] = [yield* makeMailbox("ada"), yield* makeMailbox("grace")]
      const { judge } = yield* Logins.Logins
      const login = (user: string, text = password) =>
        // Each failure from another address, so that none is delayed.
        Effect.match(judge(user, Redacted.make(text), `192.0.${attempts++}.1`, Logins.imapPurpose), {
          onFailure: ({ _tag }) => _tag,
          onSuccess: ({ identityId }) => identityId,
        })
      let attempts = 1
      expect([yield* login("ada"), yield* login("grace")]).toEqual([ada.id, grace.id])
      expect([yield* login("ada", "another"), yield* login("nobody")]).toEqual(["LoginRefused", "LoginRefused"])
      yield* sql`update identity set status = 'deleting' where id = ${ada.id}`
      yield* sql`update org set status = 'deleting' where id = ${grace.org}`
      expect([yield* login("ada"), yield* login("grace")]).toEqual(["LoginRefused", "LoginRefused"])
    }).pipe(Effect.provide(loginsWith(() => Effect.fail(new Unauthenticated({ detail: "no" }))))),
  )
})
