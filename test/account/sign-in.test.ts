/** Magic links and sessions by the test's clock. */
import { type AccountSettings, Accounts } from "@svc/cluster/account/Accounts"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Unhurried, Writes } from "@svc/cluster/store/Database"
import { magicLinkLetter } from "@svc/api/account/MagicLinks"
import { describe, expect, it, layer } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, Redacted, Result } from "effect"
import { TestClock } from "effect/testing"
import { waitUntil } from "../harness/Actors.ts"
import { countsGrow, countsOf } from "../harness/Counters.ts"
import { rows, storesLayer } from "../harness/Stores.ts"

let people = 0
const newEmail = () => `person-${people++}@example.org`

const requested = Effect.fnUntraced(function* (email: string) {
  const { token } = yield* (yield* Accounts).requestLink({ email, tos_accepted: true }, "en")
  if (token === null) throw new Error("no link was issued")
  return token
})
const consume = (token: string) => Effect.flatMap(Accounts, (accounts) => accounts.consume(token, undefined))

describe("the letter with a magic link", () => {
  const link = "https://api.example/auth/magic-link?token=t&user_code=BBBB-BBBB&request=r"
  const [en, de, fr] = (["en", "de", "fr"] as const).map((language) =>
    magicLinkLetter({ to: "ada@example.org", link, language }),
  )

  it.each([
    ["en", en!, /15 minutes.*ignore this email/s],
    ["de", de!, /15 Minuten.*diese E-Mail ignorieren/s],
    ["fr", fr!, /15 minutes.*ignorer cet e-mail/s],
  ])("has the link, its expiry and what to do with it otherwise: %s", (language, letter, words) => {
    expect(letter.to).toBe("ada@example.org")
    expect(letter.text).toMatch(words)
    expect(letter.text).toContain(`\n\n${link}\n\n`)
    expect(letter.html).toMatch(words)
    expect(letter.html).toContain(`<html lang="${language}">`)
    expect(letter.html).toContain(`<a href="${link.replaceAll("&", "&amp;")}"`)
  })

  it("differs in every language", () => {
    for (const part of ["subject", "text", "html"] as const)
      expect(new Set([en![part], de![part], fr![part]]).size).toBe(3)
  })
})

layer(storesLayer)("a magic link", (it) => {
  it.effect("is valid for 15 minutes", () =>
    Effect.gen(function* () {
      const token = yield* requested(newEmail())
      yield* TestClock.adjust("14 minutes")
      yield* TestClock.adjust("59 seconds")
      expect((yield* consume(token)).session_token).toMatch(/^svc_sess_[0-9A-Za-z]{49}$/)
      const late = yield* requested(newEmail())
      yield* TestClock.adjust("15 minutes")
      expect(yield* Effect.flip(consume(late))).toMatchObject({ code: "magic_link_invalid" })
    }),
  )

  it.effect("works once, even for ten concurrent uses, and verifies the address", () =>
    Effect.gen(function* () {
      const email = newEmail()
      const token = yield* requested(email)
      const tries = yield* Effect.forEach(Array.from({ length: 10 }), () => Effect.option(consume(token)), {
        concurrency: "unbounded",
      })
      const [used, ...others] = tries.filter(({ _tag }) => _tag === "Some")
      expect(others).toEqual([])
      expect(used).toMatchObject({ value: { org: { email, email_verified_at: expect.any(Date) } } })
      yield* TestClock.adjust("1 hour")
      const { org } = yield* consume(yield* requested(email))
      expect(used).toMatchObject({ value: { org } })
      expect(yield* Effect.flip(consume(token))).toMatchObject({ code: "magic_link_invalid" })
      expect(yield* Effect.flip(consume("nonsense"))).toMatchObject({ code: "magic_link_invalid" })
    }),
  )

  it.effect("is issued five times in 15 minutes per address, and again afterwards", () =>
    Effect.gen(function* () {
      const email = newEmail()
      const now = Date.now()
      yield* TestClock.setTime(now - 15 * 60_000 - 1_000)
      for (let n = 0; n < 5; n++) yield* requested(email)
      yield* TestClock.setTime(now)
      for (let n = 0; n < 5; n++) yield* consume(yield* requested(email.toUpperCase()))
      const sixth = yield* Effect.flip(requested(email))
      expect(sixth).toMatchObject({ code: "rate_limited", retry_after_seconds: 900 })
      yield* requested(newEmail())
    }),
  )

  it.effect("is one of five links of an address in 15 minutes, also if two are requested at the same time", () =>
    Effect.gen(function* () {
      const [email, sql] = [newEmail(), yield* Unhurried]
      for (let n = 0; n < 4; n++) yield* requested(email)
      const waiting = rows(
        (store) => store<{ n: number }>`
          select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )
      // A new link refers to its account, so both wait here, after they would have counted the links without a lock.
      const both = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select from org where email = ${email} for update`
          const both = yield* Effect.forkChild(
            Effect.all([Effect.result(requested(email)), Effect.result(requested(email))], { concurrency: 2 }),
          )
          yield* waitUntil(waiting, ([row]) => row!.n === 2, 0)
          return both
        }),
      )
      expect((yield* Fiber.join(both)).filter(Result.isSuccess)).toHaveLength(1)
    }),
  )

  it.effect("is counted when it is requested, opens a session, or is refused", () =>
    Effect.gen(function* () {
      const counts = countsOf("svc_signins_total", "outcome")
      const before = yield* counts
      const token = yield* requested(newEmail())
      yield* consume(token)
      for (const other of [token, "nonsense"]) yield* Effect.flip(consume(other))
      yield* countsGrow(counts, before, { asked: 1, opened: 1, refused: 2 })
    }),
  )

  it.effect("opens no session of an account whose deletion began after the link was sent", () =>
    Effect.gen(function* () {
      const email = newEmail()
      const token = yield* requested(email)
      yield* Effect.flatMap(Writes, (sql) => sql`update org set status = 'deleting' where email = ${email}`)
      expect(yield* Effect.flip(consume(token))).toMatchObject({ code: "magic_link_invalid" })
      expect(
        yield* rows((sql) => sql`select 1 from session s join org o on o.id = s.org_id where o.email = ${email}`),
      ).toEqual([])
    }),
  )

  it.effect("creates one Org for concurrent first contacts, under the accepted Terms", () =>
    Effect.gen(function* () {
      const email = newEmail()
      yield* Effect.forEach(Array.from({ length: 5 }), () => requested(email), { concurrency: "unbounded" })
      const orgs = yield* rows(
        (sql) => sql<{ version: string }>`
          select t.version from org o join terms_acceptance t on t.org_id = o.id where o.email = ${email}`,
      )
      expect(orgs).toEqual([{ version: "1" }])
    }),
  )
})

/** Returns the accounts of a deployment with these settings. */
const deployment = (settings: Partial<AccountSettings>) =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        Accounts.layer({
          registration: "open",
          inviteCodes: new Set<string>(),
          tosVersion: "1",
          tosEffectiveAt: null,
          ...settings,
        }),
      ),
    ),
    Context.get(Accounts),
  )

layer(storesLayer)("a session", (it) => {
  const opened = Effect.gen(function* () {
    const { session_token, session } = yield* consume(yield* requested(newEmail()))
    const lookup = yield* CredentialLookup
    const use = lookup.resolve(Redacted.make(session_token))
    const expiry = rows(
      (sql) => sql<{ expires_at: Date }>`select expires_at from session where id = ${session.id}`,
    ).pipe(Effect.map(([row]) => row!.expires_at.getTime()))
    /** Uses the session, and waits until the use is recorded. */
    const useAndSlide = Effect.gen(function* () {
      const until = (yield* Clock.currentTimeMillis) + 30 * 86_400_000
      yield* use
      yield* waitUntil(expiry, (at) => at === until, 0)
    })
    return { use, useAndSlide, expiry }
  })

  it.effect("is announced to the open pages of its account when it is opened", () =>
    Effect.gen(function* () {
      const token = yield* requested(newEmail())
      const announced: Array<unknown> = []
      const changed: ChangeFeed["Service"]["changed"] = (...change) => void announced.push(change)
      const feed = { ...(yield* ChangeFeed), changed }
      const accounts = yield* Effect.provideService(deployment({}), ChangeFeed, feed)
      const { org } = yield* accounts.consume(token, undefined)
      expect(announced).toEqual([[org.id, { resource: "session", handle: null }]])
    }).pipe(Effect.scoped),
  )

  it.effect("is listed until it expires, newest first", () =>
    Effect.gen(function* () {
      const email = newEmail()
      const first = yield* consume(yield* requested(email))
      yield* TestClock.adjust("1 day")
      const second = yield* consume(yield* requested(email))
      const accounts = yield* Accounts
      const listed = Effect.map(
        accounts.sessions(first.org.id, second.session.id, { limit: 10, cursor: undefined }),
        ({ entries }) => entries.map(({ id, current }) => [id, current]),
      )
      expect(yield* listed).toEqual([
        [second.session.id, true],
        [first.session.id, false],
      ])
      yield* TestClock.adjust("29 days")
      expect(yield* listed).toEqual([[second.session.id, true]])
    }),
  )

  it.effect("is listed page by page with its browser, and revoked only by its account", () =>
    Effect.gen(function* () {
      const [accounts, email] = [yield* Accounts, newEmail()]
      const opens = Effect.fnUntraced(function* (userAgent: string | undefined) {
        return yield* accounts.consume(yield* requested(email), userAgent)
      })
      const first = yield* opens(undefined)
      const second = yield* opens(`\u0001Mozilla é${"x".repeat(300)}`)
      const other = yield* consume(yield* requested(newEmail()))
      const page = yield* accounts.sessions(first.org.id, second.session.id, { limit: 1 })
      const next = yield* accounts.sessions(first.org.id, second.session.id, { limit: 1, cursor: page.next_cursor! })
      expect([...page.entries, ...next.entries].map(({ id, user_agent }) => [id, user_agent])).toEqual([
        [second.session.id, `Mozilla ${"x".repeat(292)}`],
        [first.session.id, null],
      ])
      expect(next.next_cursor).toBeNull()
      const foreign = accounts.revokeSession(other.org.id, first.session.id)
      expect(yield* Effect.flip(foreign)).toMatchObject({ code: "not_found" })
      yield* accounts.revokeSession(first.org.id, first.session.id)
      expect(yield* Effect.flip(accounts.revokeSession(first.org.id, first.session.id))).toMatchObject({
        code: "not_found",
      })
      yield* accounts.revokeSessions(other.org.id)
      const left = yield* accounts.sessions(first.org.id, second.session.id, { limit: 10 })
      expect(left.entries.map(({ id }) => id)).toEqual([second.session.id])
    }),
  )

  it.effect("changes settings only if they are still those that it read, and keeps the others", () =>
    Effect.gen(function* () {
      const { org } = yield* consume(yield* requested(newEmail()))
      const accounts = yield* Accounts
      const { api_version } = org
      expect(yield* accounts.setSettings(org, { language: "fr" }, { language: "de", api_version })).toBe(false)
      expect(yield* accounts.setSettings(org, { language: "fr" }, org)).toBe(true)
      expect(yield* accounts.setSettings(org, { api_version: "2020-01-01" }, null)).toBe(true)
      expect(yield* accounts.setSettings(org, { language: "de" }, { language: "fr", api_version })).toBe(false)
      const seen = { language: "fr", api_version: "2020-01-01" } as const
      expect(yield* accounts.setSettings(org, { language: "de" }, seen)).toBe(true)
      const sql = yield* Writes
      yield* sql`update org set status = 'deleting' where id = ${org.id}`
      expect(yield* accounts.setSettings(org, { language: "en" }, null)).toBe(false)
    }),
  )

  it.effect("expires after 30 days without use", () =>
    Effect.gen(function* () {
      const { use } = yield* opened
      yield* TestClock.adjust("30 days")
      expect(yield* Effect.flip(use)).toMatchObject({ code: "unauthenticated" })
    }),
  )

  it.effect("is extended by use, at most once a minute", () =>
    Effect.gen(function* () {
      const { use, useAndSlide, expiry } = yield* opened
      for (let month = 0; month < 3; month++) {
        yield* TestClock.adjust("29 days")
        yield* useAndSlide
      }
      const before = yield* expiry
      yield* TestClock.adjust("30 seconds")
      yield* use
      yield* TestClock.adjust("31 seconds")
      yield* useAndSlide
      expect((yield* expiry) - before).toBe(61_000)
      yield* TestClock.adjust("30 days")
      expect(yield* Effect.flip(use)).toMatchObject({ code: "unauthenticated" })
    }),
  )
})

layer(storesLayer)("sign-up", (it) => {
  it.effect("requires the Terms on first contact only", () =>
    Effect.gen(function* () {
      const accounts = yield* deployment({})
      const email = newEmail()
      const refused = yield* Effect.flip(accounts.requestLink({ email }, "en"))
      expect(refused).toMatchObject({ code: "tos_not_accepted" })
      yield* accounts.requestLink({ email, tos_accepted: true }, "de")
      expect(yield* accounts.requestLink({ email: email.toUpperCase() }, "fr")).toMatchObject({ language: "de" })
    }),
  )

  it.effect("is limited to invited addresses or closed, without affecting existing accounts", () =>
    Effect.gen(function* () {
      const codes = new Set(["early", "bird"])
      const invite = yield* deployment({ registration: "invite", inviteCodes: codes })
      expect(invite.registration).toBe("invite")
      const email = newEmail()
      const ask = { email, tos_accepted: true }
      for (const invite_code of [undefined, "wrong"]) {
        const request = invite_code === undefined ? ask : { ...ask, invite_code }
        expect(yield* Effect.flip(invite.requestLink(request, "en"))).toMatchObject({ code: "invite_required" })
      }
      yield* invite.requestLink({ ...ask, invite_code: " bird\n" }, "en")
      yield* invite.requestLink({ email }, "en")
      const closed = yield* deployment({ registration: "closed", inviteCodes: codes })
      const late = { email: newEmail(), tos_accepted: true, invite_code: "early" }
      expect(yield* Effect.flip(closed.requestLink(late, "en"))).toMatchObject({
        code: "invite_required",
        detail: "This service admits no new accounts.",
      })
      yield* closed.requestLink({ email }, "en")
    }),
  )

  it.effect("blocks the console from the date of new Terms until they are accepted", () =>
    Effect.gen(function* () {
      const { org } = yield* consume(yield* requested(newEmail()))
      const { org: other } = yield* consume(yield* requested(newEmail()))
      const day = new Date((yield* Clock.currentTimeMillis) + 86_400_000)
      const immediate = yield* deployment({ tosVersion: "2", tosEffectiveAt: null })
      expect(yield* immediate.terms(org)).toMatchObject({ gated: true })
      const accounts = yield* deployment({ tosVersion: "2", tosEffectiveAt: day })
      expect(yield* accounts.terms(org)).toMatchObject({ accepted_version: "1", current_version: "2", gated: false })
      yield* TestClock.adjust("1 day")
      expect(yield* accounts.terms(org)).toMatchObject({ gated: true })
      expect(yield* Effect.flip(accounts.acceptTerms(org, "1"))).toMatchObject({ code: "tos_version_mismatch" })
      const accepted = yield* accounts.acceptTerms(org, "2")
      expect(yield* accounts.terms(accepted)).toMatchObject({ accepted_version: "2", gated: false })
      yield* accounts.acceptTerms(accepted, "2")
      const history = yield* rows(
        (sql) => sql<{ version: string }>`
          select version from terms_acceptance where org_id = ${org.id} order by accepted_at`,
      )
      expect(history.map(({ version }) => version)).toEqual(["1", "2"])
      const version = rows((sql) => sql`select tos_version from org where id = ${other.id}`)
      expect(yield* version).toEqual([{ tos_version: "1" }])
    }),
  )
})
