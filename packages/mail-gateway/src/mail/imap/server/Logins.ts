/**
 * Authenticates mail clients: the Identity's address or Handle with its IMAP password or its Identity Key. A failure
 * does not say what was wrong, and repeated failures are delayed more and more, per client address and per Mailbox.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { imapVerifierPlace } from "@svc/cluster/credentials/ShowOnce"
import { StandingPasswords } from "@svc/cluster/credentials/StandingPasswords"
import { customerOf } from "@svc/cluster/net/ClientNetwork"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { orUnavailable, Reads } from "@svc/cluster/store/Database"
import { soleOf } from "@svc/domain/account/Authorization"
import { judgeNetwork } from "@svc/domain/account/PolicyEvaluation"
import { allows, type ScopeName } from "@svc/domain/account/Scope"
import { type Initiator, system } from "@svc/domain/account/Initiator"
import type { AuditSource } from "@svc/domain/audit/AuditRecord"
import { kindOf } from "@svc/domain/account/Token"
import { BoundedMap } from "@svc/domain/BoundedMap"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Context, Effect, Layer, Redacted, type Scope, Schema } from "effect"
import * as RecipientAddress from "../../RecipientAddress.ts"
import { Timing } from "../../../Timing.ts"

/** The credentials are wrong. */
export class LoginRefused extends Schema.TaggedError<LoginRefused>()("LoginRefused", {}) {}

interface Login {
  readonly identityId: IdentityId
  readonly orgId: string
  readonly canonical: string
  readonly handle: string
  readonly by: Initiator
  /** Calls `end` when the credential is revoked, until the scope closes. */
  readonly whenRevoked: (end: () => void) => Effect.Effect<void, never, Scope.Scope>
}

/** Failures within the window that are not delayed. */
const forgiven = 2
/** Maximum names with counters. */
const most = 20_000

/** The purpose of a login: its action in the audit log, and the scope that a key needs. */
interface LoginPurpose {
  readonly action: string
  readonly via: "imap" | "smtp"
  readonly scope: ScopeName
}
/** IMAP: read and file mail. */
export const imapPurpose: LoginPurpose = { action: "imap.login", via: "imap", scope: "mail:write" }
/** Submit mail (RFC 6409). */
export const submissionPurpose: LoginPurpose = { action: "submission.login", via: "smtp", scope: "mail:send" }

const sourceOf = (address: string, { via }: LoginPurpose): AuditSource => ({
  address,
  via,
  tool: null,
  user_agent: null,
})

/** Returns the audit record of a login. A password has no id, since each Mailbox has one password. */
const signIn = (
  { identityId, orgId, handle, by }: Pick<Login, "identityId" | "orgId" | "handle" | "by">,
  address: string,
  door: LoginPurpose,
): Act => ({
  org: orgId,
  class: "auth",
  action: door.action,
  actor: {
    kind: by.credentialId === null ? "imap_password" : "identity_key",
    id: by.credentialId,
    name: null,
    client: null,
  },
  identity: { id: identityId, handle },
  target: { type: "mailbox", id: identityId, name: handle },
  outcome: "allowed",
  code: null,
  scope: null,
  source: sourceOf(address, door),
  requestId: null,
})

/** Counts failures per name. */
const counters = () => {
  const failures = new BoundedMap<string, { readonly count: number; readonly since: number }>(most)
  const recent = (name: string, now: number) => {
    const known = failures.get(name)
    return known !== undefined && now - known.since <= Timing.loginWindowMillis ? known : undefined
  }
  return {
    of: (name: string, now: number) => recent(name, now)?.count ?? 0,
    add: (name: string, now: number) => {
      const { count, since } = recent(name, now) ?? { count: 0, since: now }
      failures.set(name, { count: count + 1, since })
    },
  }
}

const make = (options: { readonly mailDomain: string }) =>
  Effect.gen(function* () {
    const sql = yield* Reads
    const sealing = yield* Sealing
    const credentials = yield* CredentialLookup
    const standingKeys = yield* StandingCredentials
    const standingPasswords = yield* StandingPasswords
    const audit = yield* Audit
    const refusedCredentials = yield* RefusedCredentials
    const failures = counters()
    const refused = new LoginRefused()

    /** Returns the canonical Handle of a user name, or undefined if it is not valid. */
    const canonicalOf = (user: string): string | undefined => {
      const { local, domain } = RecipientAddress.split(user.trim())
      if (domain !== "" && domain !== options.mailDomain.toLowerCase()) return undefined
      return RecipientAddress.parse(local)?.mailbox
    }

    const byKey = Effect.fnUntraced(function* (
      canonical: string | undefined,
      key: Redacted.Redacted<string>,
      from: { readonly address: string },
      scope: ScopeName,
    ) {
      const caller = yield* credentials.resolve(key, from).pipe(
        Effect.catchTags({
          unauthenticated: () => Effect.fail(refused),
          key_expired: () => Effect.fail(refused),
          grant_revoked: () => Effect.fail(refused),
          account_deleting: () => Effect.fail(refused),
        }),
      )
      const identity = soleOf(caller)
      // Networks and scopes are checked as for an API request.
      if (!allows(caller.scopes, scope) || judgeNetwork(caller, from) !== undefined) return yield* refused
      if (caller.kind !== "identity_key" || identity === null || identity.status !== "ready") return yield* refused
      if (canonical !== undefined && canonical !== identity.canonical) return yield* refused
      const credential = { kind: caller.kind, credentialId: caller.credentialId }
      const login: Login = {
        identityId: identity.id,
        orgId: caller.org.id,
        canonical: identity.canonical,
        handle: identity.handle,
        by: { ...credential, requestId: null },
        whenRevoked: (end) =>
          Effect.flatMap(standingKeys.watch(credential), (revoked) =>
            Effect.asVoid(Effect.forkScoped(Effect.andThen(revoked, Effect.sync(end)))),
          ),
      }
      return login
    })

    const byPassword = Effect.fnUntraced(function* (
      canonical: string | undefined,
      password: Redacted.Redacted<string>,
      address: string,
      door: LoginPurpose,
    ) {
      const [row] = yield* orUnavailable(sql<{
        id: IdentityId
        handle: string
        org_id: string
        data_key: Uint8Array
        imap_verifier: Uint8Array
      }>`
        select i.id, i.handle, i.org_id, o.data_key, m.imap_verifier
        from identity i join org o on o.id = i.org_id join mailbox m on m.identity_id = i.id
        where i.canonical = ${canonical ?? ""} and i.status = 'ready' and o.status = 'active'`)
      const given = createHash("sha256").update(Redacted.value(password)).digest()
      if (row === undefined || canonical === undefined) return yield* refused
      const owner = { id: row.id, orgId: row.org_id }
      const dataKey = yield* Effect.orDie(sealing.openDataKey(row.org_id, row.data_key))
      const verifier = yield* Effect.orDie(sealing.open(dataKey, imapVerifierPlace(owner), row.imap_verifier))
      if (verifier.length !== given.length || !timingSafeEqual(verifier, given)) {
        yield* audit.record({
          ...signIn({ identityId: row.id, orgId: row.org_id, handle: row.handle, by: system }, address, door),
          outcome: "refused",
          code: "unauthenticated",
        })
        return yield* refused
      }
      const login: Login = {
        identityId: row.id,
        orgId: row.org_id,
        canonical,
        handle: row.handle,
        // The password is equivalent to the Identity's key.
        by: { kind: "identity_key", credentialId: null, requestId: null },
        whenRevoked: (end) => standingPasswords.watch({ identityId: row.id, verifier: row.imap_verifier }, end),
      }
      return login
    })

    return {
      /** Authenticates a client. A key identifies the Identity if there is no user name. */
      judge: Effect.fnUntraced(function* (
        user: string | undefined,
        password: Redacted.Redacted<string>,
        address: string,
        door: LoginPurpose,
      ) {
        const canonical = user === undefined ? undefined : canonicalOf(user)
        const names = [`address ${customerOf(address)}`, ...(canonical === undefined ? [] : [`mailbox ${canonical}`])]
        const isKey = kindOf(Redacted.value(password)) === "identity_key"
        const judged: Effect.Effect<Login, LoginRefused | Effect.Error<ReturnType<typeof byPassword>>> =
          (user !== undefined && canonical === undefined) || (user === undefined && !isKey)
            ? Effect.fail(refused)
            : isKey
              ? byKey(canonical, password, { address }, door.scope)
              : byPassword(canonical, password, address, door)
        const known = Effect.tap(judged, (login) => audit.record(signIn(login, address, door)))
        return yield* Effect.tapError(known, (error) =>
          error._tag !== "LoginRefused"
            ? Effect.void
            : Effect.gen(function* () {
                const now = yield* monotonicMillis
                const worst = Math.max(...names.map((name) => failures.of(name, now)))
                for (const name of names) failures.add(name, now)
                // A failed attempt with a known credential is recorded for its owner.
                const source = sourceOf(address, door)
                const what = { action: door.action, code: "unauthenticated", source, requestId: null }
                yield* refusedCredentials.turnedAway(password, what)
                const wait = Math.min(
                  Math.max(0, worst - forgiven + 1) * Timing.loginStepMillis,
                  Timing.loginMostMillis,
                )
                yield* Effect.sleep(wait)
              }),
        )
      }),
    }
  })

export class Logins extends Context.Service<Logins, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/imap/Logins",
) {
  static readonly layer = (options: { readonly mailDomain: string }) => Layer.effect(Logins, make(options))
}
