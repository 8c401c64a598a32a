/** Sign-up and sign-in by magic link, sessions, and the Terms an Org accepted (interface.md "Magic link and session"). */
import { randomBytes } from "node:crypto"
import { makeUuidV7 } from "@svc/domain/Ids"
import type {
  Language,
  ListedSession,
  MagicLinkRequest,
  Org,
  RegistrationState,
  TermsStatus,
} from "@svc/domain/account/Account"
import type { PageRequest } from "@svc/domain/Paging"
import { Versions } from "@svc/domain/Versions"
import {
  InviteRequired,
  MagicLinkInvalid,
  NotFound,
  TosNotAccepted,
  TosVersionMismatch,
} from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import { mint, sha256 } from "../credentials/CredentialMint.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { overLimit } from "../observe/RateLimit.ts"
import * as Metrics from "../observe/Metrics.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { orgOf } from "./CredentialLookup.ts"

export interface AccountSettings {
  readonly registration: RegistrationState
  readonly inviteCodes: ReadonlySet<string>
  readonly tosVersion: string
  /** The time from which the console is blocked for Orgs that only accepted an earlier version. */
  readonly tosEffectiveAt: Date | null
}

/** Links that an email address may request in 15 minutes (decisions.md "Limits"). */
const linksPerEmail = 5
const linkWindowMillis = 15 * 60 * 1000
/** The first half of the advisory locks for counting an Org's links: "link" in ASCII. */
const linkLock = 0x6c_69_6e_6b

/** The settings that the account holder may change. */
type Settings = Pick<Org, "language" | "api_version">

type SessionRow = Omit<ListedSession, "current">

/** Returns the printable part of the browser's User-Agent. */
const shownAgent = (userAgent: string | undefined) => userAgent?.replace(/[^\x20-\x7e]/g, "").slice(0, 300) ?? null

const signIns = Metrics.counter(
  "svc_signins_total",
  "Sign-in links: asked for, opened a session, refused",
  ["outcome"],
  [["asked"], ["opened"], ["refused"]],
)

/** An issued link; null if the account is being deleted. */
interface IssuedLink {
  readonly token: string | null
  readonly language: Language
  readonly expiresAt: Date
}

const make = (settings: AccountSettings) =>
  Effect.gen(function* () {
    const sql = yield* Writes
    const sealing = yield* Sealing
    const feed = yield* ChangeFeed
    /** A new account keeps the version of its day until the account holder changes it. */
    const newest = (yield* Versions).at(-1)!.version

    const admit = (request: MagicLinkRequest): Effect.Effect<void, InviteRequired | TosNotAccepted> => {
      const { invite_code: code } = request
      if (settings.registration === "closed") {
        return Effect.fail(new InviteRequired({ detail: "This service admits no new accounts." }))
      }
      if (settings.registration === "invite" && (code === undefined || !settings.inviteCodes.has(code.trim()))) {
        const detail =
          code === undefined ? "A new account needs an `invite_code`." : "The `invite_code` is not a valid invitation."
        return Effect.fail(new InviteRequired({ detail }))
      }
      return request.tos_accepted === true
        ? Effect.void
        : Effect.fail(new TosNotAccepted({ detail: "First contact needs `tos_accepted: true`." }))
    }

    const signUp = Effect.fnUntraced(function* (email: string, language: Language, now: Date) {
      const id = yield* makeUuidV7
      const { sealed } = yield* sealing.makeDataKey(id)
      // Two concurrent first contacts create one Org.
      yield* sql`
        with made as (
          insert into org (id, email, language, api_version, tos_version, tos_accepted_at, data_key, created_at)
          values (${id}, ${email}, ${language}, ${newest}, ${settings.tosVersion}, ${now}, ${sealed}, ${now})
          on conflict (email) do nothing
          returning id
        )
        insert into terms_acceptance (org_id, version, accepted_at) select id, ${settings.tosVersion}::text, ${now}::timestamptz from made`
    })

    const find = (email: string) =>
      Effect.map(
        sql<{ id: string; status: string; language: Language }>`
          select id, status, language from org where email = ${email}`,
        ([row]) => row,
      )

    /**
     * Stores a link unless the Org has reached its limit. Requests are counted one at a time, so each sees the one
     * before.
     */
    const keep = (org: string, token: string, now: Date, expiresAt: Date) =>
      sql.withTransaction(
        Effect.andThen(
          sql`select pg_advisory_xact_lock(${linkLock}, hashtext(${org}::text))`,
          sql`
            insert into magic_link (token_hash, org_id, created_at, expires_at)
            select ${sha256(token)}::bytea, ${org}::uuid, ${now}::timestamptz, ${expiresAt}::timestamptz
            where (select count(*) from magic_link where org_id = ${org}::uuid and created_at > ${new Date(now.getTime() - linkWindowMillis)}) < ${linksPerEmail}
            returning 1`,
        ),
      )

    const requestLink = Effect.fn("Accounts.requestLink")(function* (request: MagicLinkRequest, spoken: Language) {
      const email = request.email.toLowerCase()
      const now = new Date(yield* Clock.currentTimeMillis)
      const expiresAt = new Date(now.getTime() + Timing.magicLinkMillis)
      let org = yield* find(email)
      if (org === undefined) {
        yield* admit(request)
        yield* signUp(email, request.language ?? spoken, now)
        org = (yield* find(email))!
      }
      if (org.status !== "active") return { token: null, language: org.language, expiresAt }
      const token = randomBytes(32).toString("base64url")
      const kept = yield* keep(org.id, token, now, expiresAt)
      if (kept.length === 0) {
        const windowSeconds = linkWindowMillis / 1000
        return yield* overLimit(
          { name: "magic_link_address", quota: linksPerEmail, windowSeconds, resetSeconds: windowSeconds },
          "Too many links were requested for this address.",
        )
      }
      signIns.of("asked").n++
      const link: IssuedLink = { token, language: org.language, expiresAt }
      return link
    }, orUnavailable)

    const consume = Effect.fn("Accounts.consume")(function* (token: string, userAgent: string | undefined) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const minted = mint("session")
      const sessionId = yield* makeUuidV7
      const expiresAt = new Date(now.getTime() + Timing.sessionMillis)
      // A single statement, so that only one of two concurrent requests can use the token.
      const [row] = yield* sql<Parameters<typeof orgOf>[0]>`
        with used as (
          update magic_link set used_at = ${now}
          where token_hash = ${sha256(token)} and used_at is null and expires_at > ${now}
          returning org_id
        ),
        verified as (
          update org set email_verified_at = coalesce(email_verified_at, ${now}) from used
          where org.id = used.org_id and org.status = 'active'
          returning org.*
        ),
        opened as (
          insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at, user_agent)
          select ${sessionId}::uuid, id, ${minted.hash}::bytea, ${now}::timestamptz, ${now}::timestamptz, ${expiresAt}::timestamptz,
                 ${shownAgent(userAgent)}::text
          from verified
        )
        select id as org_id, email, language, api_version, status as org_status, tos_version, tos_accepted_at, email_verified_at, created_at as org_created_at
        from verified`
      signIns.of(row === undefined ? "refused" : "opened").n++
      if (row === undefined) return yield* new MagicLinkInvalid({ detail: "The link is unknown, used or expired." })
      feed.changed(row.org_id, { resource: "session", handle: null })
      return {
        session_token: minted.token,
        session: { id: sessionId, expires_at: expiresAt, created_at: now },
        org: orgOf(row),
      }
    }, orUnavailable)

    return {
      registration: settings.registration,
      requestLink,
      consume,
      /** Returns the sessions that have not expired, newest first; `current` is the caller's. */
      sessions: (org: string, current: string, request: PageRequest) =>
        orUnavailable(
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            Cursors.page(
              sealing,
              `sessions/${org}`,
              request,
              (behind, atMost) => sql<SessionRow>`
                select id, created_at, last_used_at, expires_at, user_agent from session
                where org_id = ${org} and expires_at > ${new Date(now)} ${behind === undefined ? sql`` : sql`and id < ${behind}::uuid`}
                order by id desc limit ${atMost}`,
              ({ id }) => id,
              (row): ListedSession => ({ ...row, current: row.id === current }),
            ),
          ),
        ),
      /** Revokes a session immediately. */
      revokeSession: (org: string, id: string) =>
        orUnavailable(
          Effect.flatMap(sql`delete from session where id = ${id} and org_id = ${org} returning 1`, (deleted) =>
            deleted.length === 0
              ? Effect.fail(new NotFound({ detail: "The session does not exist." }))
              : Effect.sync(() => feed.announce({ org })),
          ),
        ),
      /**
       * Revokes all sessions, and runs `also` in the same transaction. A session that is about to create something, for example a
       * Grant, does so before `also` runs, or not at all.
       */
      revokeSessions: <E = never, R = never>(org: string, also: Effect.Effect<void, E, R> = Effect.void) =>
        orUnavailable(
          Effect.andThen(
            sql.withTransaction(Effect.andThen(sql`delete from session where org_id = ${org}`, also)),
            Effect.sync(() => feed.announce({ org })),
          ),
        ),
      /**
       * Changes settings and returns whether it did. It does not if `seen` is given and the Org has other settings.
       */
      setSettings: ({ id }: Org, { language, api_version }: Partial<Settings>, seen: Settings | null) =>
        orUnavailable(
          Effect.map(
            sql`update org set language = coalesce(${language ?? null}, language),
                               api_version = coalesce(${api_version ?? null}, api_version)
                where id = ${id} and status = 'active'
                  and (${seen === null} or (language = ${seen?.language ?? null} and api_version = ${seen?.api_version ?? null}))
                returning 1`,
            (rows) => rows.length > 0,
          ),
        ),
      /** Appends the acceptance to the Org's history; repeating a version changes nothing. */
      acceptTerms: Effect.fn("Accounts.acceptTerms")(function* (org: Org, version: string) {
        if (version !== settings.tosVersion) {
          return yield* new TosVersionMismatch({ detail: `The version in force is ${settings.tosVersion}.` })
        }
        const now = new Date(yield* Clock.currentTimeMillis)
        const [row] = yield* sql<{ tos_version: string; tos_accepted_at: Date }>`
          with accepted as (
            update org set tos_version = ${version}, tos_accepted_at = ${now}
            where id = ${org.id} and tos_version <> ${version} returning id
          ),
          noted as (insert into terms_acceptance (org_id, version, accepted_at) select id, ${version}::text, ${now}::timestamptz from accepted)
          select case when exists (select from accepted) then ${version}::text else tos_version end as tos_version,
                 case when exists (select from accepted) then ${now}::timestamptz else tos_accepted_at end as tos_accepted_at
          from org where id = ${org.id}`
        return { ...org, ...row }
      }, orUnavailable),
      terms: (org: Org): Effect.Effect<TermsStatus> =>
        Effect.map(Clock.currentTimeMillis, (now) => ({
          current_version: settings.tosVersion,
          accepted_version: org.tos_version,
          accepted_at: org.tos_accepted_at,
          effective_at: settings.tosEffectiveAt,
          gated:
            org.tos_version !== settings.tosVersion &&
            (settings.tosEffectiveAt === null || settings.tosEffectiveAt.getTime() <= now),
        })),
    }
  })

export class Accounts extends Context.Service<Accounts, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/account/Accounts",
) {
  static readonly layer = (settings: AccountSettings) => Layer.effect(Accounts, make(settings))
}
