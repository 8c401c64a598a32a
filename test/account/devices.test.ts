/** Device login by the test's clock (RFC 8628). */
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import type { AuditNote } from "@svc/cluster/actor/Write"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import { Devices } from "@svc/cluster/account/Devices"
import { keysAtMost, type RequestedRights, judgeRights } from "@svc/domain/account/KeyRights"
import type { Initiator } from "@svc/domain/account/Initiator"
import type { DeviceApproval } from "@svc/domain/account/Device"
import { scopesOf, unlimited } from "@svc/domain/account/Scope"
import { makeUuidV7 } from "@svc/domain/Ids"
import { isScope } from "@svc/domain/ScopeTable"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Redacted, Result } from "effect"
import { TestClock } from "effect/testing"
import { act, noKey } from "../audit/Acts.ts"
import { afterwards } from "../harness/Afterwards.ts"
import { interruptAtLock } from "../harness/InterruptedStatement.ts"
import { accountHolder, makeOrg, rows, storesLayer } from "../harness/Stores.ts"

const started = Effect.gen(function* () {
  const devices = yield* Devices
  const login = yield* devices.start({ name: "laptop", client: "svc 0.1" }, undefined)
  return {
    ...login,
    view: devices.view(login.userCode),
    poll: devices.poll(login.deviceCode),
    /** The error that the terminal receives instead of a key. */
    refusal: Effect.flip(devices.poll(login.deviceCode)),
    approve: (org: string, by: Initiator = accountHolder, note?: AuditNote) =>
      devices.approve(org, login.userCode, {}, byHolder, by, note),
    deny: devices.deny(login.userCode),
  }
})

const byHolder = (requested: RequestedRights) =>
  judgeRights({ scopes: unlimited, expiresAt: null, networks: null }, requested, isScope, 0)

interface DeviceRequest {
  readonly scopes?: ReadonlyArray<string>
  readonly expires_in_days?: number
}

const code = (code: string) => expect.objectContaining({ code })

layer(storesLayer)("a device login", (it) => {
  it.effect("is polled every five seconds, and five seconds slower after each early poll", () =>
    Effect.gen(function* () {
      const { refusal, intervalSeconds } = yield* started
      expect(intervalSeconds).toBe(5)
      const other = yield* started
      expect(yield* refusal).toMatchObject({ code: "authorization_pending", retry_after_seconds: 5 })
      // Polls of one login do not count for another one.
      expect(yield* other.refusal).toMatchObject({ code: "authorization_pending" })
      yield* TestClock.adjust("5 seconds")
      expect(yield* refusal).toMatchObject({ code: "authorization_pending", retry_after_seconds: 5 })
      yield* TestClock.adjust("4999 millis")
      expect(yield* refusal).toMatchObject({ code: "slow_down", retry_after_seconds: 10 })
      yield* TestClock.adjust("9999 millis")
      expect(yield* refusal).toMatchObject({ code: "slow_down", retry_after_seconds: 15 })
      yield* TestClock.adjust("15 seconds")
      expect(yield* refusal).toMatchObject({ code: "authorization_pending", retry_after_seconds: 15 })
    }),
  )

  it.effect("returns a working key once after approval", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const login = yield* started
      yield* login.approve(org, accountHolder, AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org))))
      expect(yield* rows((sql) => sql`select 1 from audit where org_id = ${org}`)).toHaveLength(1)
      expect(yield* login.view).toMatchObject({ name: "laptop", client: "svc 0.1", status: "approved" })
      const sealed = yield* rows(
        (sql) => sql<{ sealed_key: Uint8Array }>`select sealed_key from device_authorization where org_id = ${org}`,
      )
      expect(Buffer.from(sealed[0]!.sealed_key).toString("latin1")).not.toContain("svc_admin_")
      const { key, api_key } = yield* login.poll
      expect(api_key).toMatchObject({ name: "laptop", scope: "org" })
      const caller = yield* (yield* CredentialLookup).resolve(Redacted.make(key))
      expect(caller).toMatchObject({ kind: "admin_key", org: { id: org }, keyName: "laptop" })
      expect(yield* login.refusal).toEqual(code("device_code_used"))
      expect((yield* login.view).status).toBe("collected")
    }),
  )

  it.effect("can be decided and collected for ten minutes", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const [pending, approved] = [yield* started, yield* started]
      yield* TestClock.adjust("9 minutes")
      yield* approved.approve(org)
      const at = pending.expiresAt.getTime()
      yield* TestClock.setTime(at - 1)
      expect(yield* pending.refusal).toEqual(code("authorization_pending"))
      yield* TestClock.setTime(at)
      for (const login of [pending, approved]) {
        expect(yield* login.refusal).toEqual(code("device_code_expired"))
        expect((yield* login.view).status).toBe("expired")
        expect(yield* Effect.flip(login.approve(org))).toEqual(code("device_authorization_settled"))
        expect(yield* Effect.flip(login.deny)).toEqual(code("device_authorization_settled"))
      }
    }),
  )

  it.effect("accepts one decision only", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const [login, other] = [yield* started, yield* started]
      yield* login.deny
      expect((yield* other.view).status).toBe("pending")
      expect(yield* login.refusal).toEqual(code("device_code_denied"))
      expect(yield* Effect.flip(login.approve(org))).toEqual(code("device_authorization_settled"))
      // The key of a login that was collected is revoked as a key, and not by denying the login.
      const collected = yield* started
      yield* collected.approve(org)
      yield* collected.poll
      expect(yield* Effect.flip(collected.deny)).toEqual(code("device_authorization_settled"))
      expect(yield* collected.view).toMatchObject({ status: "collected" })
      const raced = yield* started
      const both = yield* Effect.all([Effect.result(raced.approve(org)), Effect.result(raced.deny)], {
        concurrency: "unbounded",
      })
      expect(both.filter(Result.isSuccess)).toHaveLength(1)
    }),
  )

  it.effect("can be approved for the days that it asks for or fewer, and not for more", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const devices = yield* Devices
      const approved = Effect.fnUntraced(function* (days: number) {
        const { userCode } = yield* devices.start({ name: "laptop", expires_in_days: 30 }, undefined)
        const approval = devices.approve(org, userCode, { expires_in_days: days }, byHolder, accountHolder)
        return yield* Effect.match(approval, { onFailure: (problem) => problem._tag, onSuccess: () => "approved" })
      })
      expect(yield* Effect.forEach([29, 30, 31], approved)).toEqual(["approved", "approved", "scope_exceeds"])
    }),
  )

  it.effect("gets the scopes and days that it asks for, without those that the approver removes", () =>
    Effect.gen(function* () {
      const [org, devices] = [yield* makeOrg, yield* Devices]
      /** Returns the rights that are judged, or why the approval is rejected. */
      const judged = Effect.fnUntraced(function* (asked: DeviceRequest, given: DeviceApproval) {
        const { scopes, ...request } = asked
        const { userCode } = yield* devices.start({ name: "laptop", ...request }, scopes && scopesOf(scopes.join(" ")))
        const view = yield* devices.view(userCode)
        expect([view.scopes, view.expires_in_days]).toEqual([scopes ?? ["*"], asked.expires_in_days ?? null])
        let rights: RequestedRights | undefined
        const judge = (requested: RequestedRights) => {
          rights = requested
          return byHolder(requested)
        }
        const approval = devices.approve(org, userCode, given, judge, accountHolder)
        return yield* Effect.match(approval, { onFailure: (problem) => problem._tag, onSuccess: () => rights })
      })
      const both = ["mail:read", "card:read"] as const
      expect(yield* judged({}, {})).toEqual({})
      expect(yield* judged({}, { scopes: ["mail:read"], expires_in_days: 9 })).toEqual({
        scopes: ["mail:read"],
        expires_in_days: 9,
      })
      expect(yield* judged({ scopes: both, expires_in_days: 7 }, {})).toEqual({ scopes: both, expires_in_days: 7 })
      expect(yield* judged({ scopes: both }, { scopes: ["mail:read"] })).toEqual({ scopes: ["mail:read"] })
      expect(yield* judged({ scopes: both }, { scopes: ["mail:read", "card:write"] })).toBe("scope_exceeds")
    }),
  )

  it.effect("is not approved beyond the number of keys of the account, and then stays undecided", () =>
    Effect.gen(function* () {
      const [sql, org, login] = [yield* Writes, yield* makeOrg, yield* started]
      yield* sql`
        insert into api_key (id, org_id, name, token_prefix, token_hash, created_at)
        select uuidv7(), ${org}, 'k', 'p', sha256((${org} || n)::bytea), now() from generate_series(1, ${keysAtMost}::int) n`
      expect(yield* Effect.flip(login.approve(org))).toMatchObject({ code: "key_quota_exhausted" })
      expect((yield* login.view).status).toBe("pending")
      yield* sql`update api_key set revoked_at = now() where id = (select id from api_key where org_id = ${org} limit 1)`
      yield* login.approve(org)
      expect((yield* login.view).status).toBe("approved")
    }),
  )

  it.effect("returns its key to only one of the polls that wait for the approval", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      for (let round = 0; round < 5; round++) {
        const login = yield* started
        const polls = Array.from({ length: 20 }, () => Effect.result(login.poll))
        const [answers] = yield* Effect.all([Effect.all(polls, { concurrency: "unbounded" }), login.approve(org)], {
          concurrency: "unbounded",
        })
        const last = yield* Effect.result(login.poll)
        expect([...answers, last].filter(Result.isSuccess)).toHaveLength(1)
      }
      const login = yield* started
      yield* login.approve(org)
      const sql = yield* Writes
      const collected = sql`
        update device_authorization set status = 'collected', sealed_key = null where org_id = ${org} and status = 'approved'`
      expect(yield* afterwards(collected, login.refusal)).toEqual(code("device_code_used"))
    }),
  )

  it.effect("is unchanged by a decision or collection that crashes before its commit, and accepts the next one", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const login = yield* started
      const unavailable = { _tag: "Failure", failure: code("unavailable") }
      const keys = rows((sql) => sql`select 1 from api_key where org_id = ${org} and revoked_at is null`)
      expect(yield* interruptAtLock(login.approve(org))).toMatchObject(unavailable)
      expect((yield* login.view).status).toBe("pending")
      expect(yield* keys).toEqual([])
      yield* login.approve(org)
      // Interrupted after the key was marked as collected, while it is read for the response.
      expect(yield* interruptAtLock(login.poll, "api_key", { lock: "access exclusive" })).toMatchObject(unavailable)
      expect((yield* login.view).status).toBe("approved")
      const { key, api_key } = yield* login.poll
      expect(yield* (yield* CredentialLookup).resolve(Redacted.make(key))).toMatchObject({ credentialId: api_key.id })
      expect(yield* login.refusal).toEqual(code("device_code_used"))
      expect(yield* keys).toHaveLength(1)
    }),
  )

  it.effect("never shows a key again that was lost with the response, and its holder can revoke it", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const login = yield* started
      yield* login.approve(org)
      const lost = yield* login.poll
      expect(yield* login.refusal).toEqual(code("device_code_used"))
      const stored = yield* rows((sql) => sql`select sealed_key from device_authorization where org_id = ${org}`)
      expect(stored).toEqual([{ sealed_key: null }])
      const keys = yield* ApiKeys
      const { entries } = yield* keys.list(org, { limit: 10 })
      expect(entries.map(({ id, name }) => [id, name])).toEqual([[lost.api_key.id, "laptop"]])
      yield* keys.revoke(org, entries[0]!.id, accountHolder)
      expect(yield* Effect.flip((yield* CredentialLookup).resolve(Redacted.make(lost.key)))).toEqual(
        code("unauthenticated"),
      )
    }),
  )

  it.effect("is denied if the key that approved it was revoked or has expired, and its own key is revoked", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const keys = yield* ApiKeys
      const now = yield* Clock.currentTimeMillis
      const approver = Effect.gen(function* () {
        const rights = { scopes: unlimited, expiresAt: new Date(now + 60_000), networks: null }
        const wanted = { id: yield* makeUuidV7, name: "approver", identity: null, rights }
        const { key, api_key } = yield* keys.create(org, wanted, accountHolder)
        const caller = yield* (yield* CredentialLookup).resolve(Redacted.make(key))
        const by = { kind: "admin_key", credentialId: api_key.id, requestId: null } as const
        const login = yield* started
        yield* login.approve(org, by)
        return { id: api_key.id, caller, login }
      })
      const names = Effect.map(keys.list(org, { limit: 50 }), ({ entries }) =>
        entries.map(({ name }) => name).toSorted(),
      )
      const [revoked, rotated, expired] = [yield* approver, yield* approver, yield* approver]
      yield* keys.revoke(org, revoked.id, accountHolder)
      yield* keys.rotate(rotated.caller, rotated.id, yield* makeUuidV7, 0, accountHolder)
      expect(yield* revoked.login.refusal).toEqual(code("device_code_denied"))
      expect(yield* revoked.login.refusal).toEqual(code("device_code_denied"))
      expect((yield* revoked.login.view).status).toBe("denied")
      expect(yield* names).toEqual(["approver", "approver", "approver", "laptop", "laptop"])
      expect(yield* rotated.login.poll).toMatchObject({ api_key: { name: "laptop" } })
      yield* TestClock.adjust("1 minute")
      expect(yield* expired.login.refusal).toEqual(code("device_code_denied"))
      expect(yield* names).toEqual(["approver", "approver", "approver", "laptop"])
    }),
  )

  it.effect("returns no key that was revoked before its collection", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const login = yield* started
      yield* login.approve(org)
      const keys = yield* ApiKeys
      const [made] = (yield* keys.list(org, { limit: 50 })).entries
      yield* keys.revoke(org, made!.id, accountHolder)
      expect(yield* login.refusal).toEqual(code("device_code_used"))
    }),
  )

  it.effect("rejects an unknown code", () =>
    Effect.gen(function* () {
      const devices = yield* Devices
      expect(yield* Effect.flip(devices.poll("nonsense"))).toEqual(code("device_code_invalid"))
      for (const unknown of ["BBBB-BBBB", "nonsense"]) {
        expect(yield* Effect.flip(devices.view(unknown))).toEqual(code("not_found"))
        expect(yield* Effect.flip(devices.deny(unknown))).toEqual(code("not_found"))
      }
    }),
  )
})
