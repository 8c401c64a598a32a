/** Background work of a Connector whose platform fails: checks of the profile, polls and refreshes; and calls that it does not respond to. */
import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import type * as Failure from "@svc/cluster/connectors/platforms/Failure"
import type { Poll } from "@svc/cluster/connectors/platforms/Platform"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Clock, Effect, Exit, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { awaitFiber, waitUntil } from "../harness/Actors.ts"
import { whenWaiting } from "../harness/Afterwards.ts"
import { rows } from "../harness/Stores.ts"
import { eventsOf, newPost, rowOf } from "./ConnectedIdentity.ts"
import { failures, login, reading, script, scriptedActors, scriptedIdentity, status } from "./ScriptedPlatform.ts"

const { passing, refused, silence } = failures
const noResponse = "The server did not respond in time."
const through = <A, E, R>(message: Effect.Effect<A, E, R>) => ask(message, Timing.askPlatform)
const typesOf = (id: string) => Effect.map(eventsOf(id), (events) => events.map(({ type }) => type))
const marked = (id: string) => waitUntil(rowOf(id), (row) => row?.mark != null, 0)

layer(scriptedActors)("a check of a profile", (it) => {
  const hour = Timing.profileRecheckMillis
  const disclosed = Effect.succeed({ ...status, disclosed: true })
  /** Advances the clock to the next check, and returns the milliseconds from there to the check after it. */
  const nextCheck = Effect.fnUntraced(function* (id: string) {
    const due = (yield* rowOf(id))!.check_due_at!
    yield* TestClock.setTime(Math.max(due.getTime(), yield* Clock.currentTimeMillis))
    const { value } = yield* waitUntil(rowOf(id), (row) => row?.check_due_at?.getTime() !== due.getTime(), "1 second")
    return value!.check_due_at === null ? null : value!.check_due_at.getTime() - due.getTime()
  })

  // The first test, because checks of other Connectors would start as well.
  it.effect("that ends after the Connector was paused or connected again schedules no check", () =>
    Effect.gen(function* () {
      const [undisclosed, late] = [Effect.succeed(status), passing[1]![1]]
      script()
      const { id, org_id, handle, actor } = yield* scriptedIdentity("late")
      const sql = yield* Writes
      yield* marked(id)
      for (const [what, earlier, outcome] of [
        ["failed", undisclosed, late],
        ["updated", undisclosed, undisclosed],
        ["stopped", disclosed, undisclosed],
        ["recovered", undisclosed, disclosed],
        ["connected again", disclosed, late],
      ] as const) {
        script({ inspect: () => earlier })
        yield* ask(actor.Pause({ org_id, paused: false, everyone: true }))
        yield* nextCheck(id)
        let started = false
        const gate = Promise.withResolvers<void>()
        const held = Effect.promise(() => ((started = true), gate.promise))
        script({ inspect: () => Effect.andThen(held, outcome) })
        yield* TestClock.setTime(Math.max((yield* rowOf(id))!.check_due_at!.getTime(), yield* Clock.currentTimeMillis))
        const seen = Effect.map(rowOf(id), () => started)
        yield* waitUntil(seen, Boolean, "1 second")
        const isPaused = what !== "connected again"
        if (isPaused) yield* ask(actor.Pause({ org_id, paused: true, everyone: true }))
        else yield* login(handle, org_id)
        const { check_due_at } = (yield* rowOf(id))!
        const ends = Effect.sync(() => gate.resolve())
        // The write of the check waits for the lock, and the next command for the write. It is refused while all are paused.
        yield* isPaused ? whenWaiting(sql`select from connector where identity_id = ${id} for update`, ends) : ends
        const resumed = yield* Effect.exit(ask(actor.Pause({ org_id, paused: false, everyone: false })))
        expect([what, Exit.isFailure(resumed), check_due_at === null]).toEqual([what, isPaused, isPaused])
        const after = (yield* rowOf(id))!
        expect([what, after.check_due_at]).toEqual([what, check_due_at])
        if (!isPaused) break
        const expected = what === "stopped" ? "stopped" : "connected"
        expect([what, after.status, after.poll_due_at]).toEqual([what, expected, null])
      }
    }),
  )

  it.effect("is repeated after an hour if it fails, and a day after it succeeded", () =>
    Effect.gen(function* () {
      script()
      const { id } = yield* scriptedIdentity("check")
      for (const [what, failure] of [...passing, silence]) {
        script({ inspect: () => failure })
        const wait = yield* nextCheck(id)
        expect([what, Math.round(wait! / hour)]).toEqual([what, 1])
      }
      const connected = yield* rowOf(id)
      script()
      yield* nextCheck(id)
      // The version of the Connector only changes with its account.
      expect((yield* rowOf(id))!.updated_at).toEqual(connected!.updated_at)
      script({ inspect: () => Effect.succeed({ ...status, capabilities: ["post", "dm"] }) })
      expect(Math.round((yield* nextCheck(id))! / hour)).toBe(24)
      expect((yield* rowOf(id))!.updated_at).not.toEqual(connected!.updated_at)
      // The account was never marked as automated, so it need not be.
      expect(yield* rowOf(id)).toMatchObject({ status: "connected", capabilities: ["post", "dm"] })
      script({ inspect: () => refused })
      expect(yield* nextCheck(id)).toBe(null)
      expect(yield* rowOf(id)).toMatchObject({ status: "stopped", last_error: "Mastodon: token expired" })
      expect(yield* typesOf(id)).toEqual(["connector.connected", "connector.stopped"])
    }),
  )

  it.effect("that stopped the Connector is repeated every hour until the profile is marked again", () =>
    Effect.gen(function* () {
      script({ inspect: () => disclosed })
      const { id } = yield* scriptedIdentity("marks")
      yield* nextCheck(id)
      script()
      yield* nextCheck(id)
      expect(yield* rowOf(id)).toMatchObject({ status: "stopped", poll_due_at: null })
      for (const inspect of [Effect.succeed(status), refused, passing[1]![1]]) {
        script({ inspect: () => inspect })
        expect(Math.round((yield* nextCheck(id))! / hour)).toBe(1)
      }
      script({ inspect: () => disclosed })
      expect(Math.round((yield* nextCheck(id))! / hour)).toBe(24)
      const { id: account_id, name: account, service } = status.account
      const of = { platform: "mastodon", account }
      const error = expect.any(String)
      expect(yield* eventsOf(id)).toEqual([
        {
          type: "connector.connected",
          data: { ...of, account_id, service, connected_via: "app_password", capabilities: ["post"] },
        },
        { type: "connector.stopped", data: { ...of, error, remedy: expect.any(String) } },
        { type: "connector.recovered", data: { ...of, account_id, service } },
      ])
    }),
  )
})

layer(scriptedActors)("a poll", (it) => {
  /** Advances the clock to the next poll, and returns the row after it. */
  const nextPoll = Effect.fnUntraced(function* (id: string) {
    const due = (yield* rowOf(id))!.poll_due_at!
    yield* TestClock.setTime(Math.max(due.getTime(), yield* Clock.currentTimeMillis))
    const { value } = yield* waitUntil(rowOf(id), (row) => row?.poll_due_at?.getTime() !== due.getTime(), "1 second")
    return value!
  })

  it.effect("that fails shows the reason, is delayed longer each time, and does not move the position", () =>
    Effect.gen(function* () {
      script()
      const { id, org_id, actor } = yield* scriptedIdentity("polls")
      const { value } = yield* marked(id)
      let wait = value!.poll_wait_millis
      for (const [what, failure] of [...passing, silence]) {
        script({ poll: () => failure })
        wait = Math.min(wait * 2, Timing.pollLongestMillis)
        const last_error =
          { "a defect": "The poll failed because of an error in this service.", "no response": noResponse }[what] ??
          "slow down"
        const row = yield* nextPoll(id)
        expect([what, row]).toMatchObject([what, { last_error, poll_wait_millis: wait, mark: "mark" }])
        expect(row.polled_at).toEqual(value!.polled_at)
      }
      script({ poll: () => Effect.succeed({ received: [], mark: "later", more: false }) })
      const row = yield* nextPoll(id)
      expect(row).toMatchObject({ last_error: null, mark: "later" })
      expect(row.polled_at!.getTime()).toBeGreaterThan(value!.polled_at!.getTime())
      const notBefore = new Date((yield* Clock.currentTimeMillis) + 30 * 60_000)
      script({ poll: () => Effect.succeed({ received: [], mark: "later", more: false, notBefore }) })
      expect((yield* nextPoll(id)).poll_due_at).toEqual(notBefore)
      yield* through(actor.Disconnect({ org_id }))
    }),
  )

  it.effect("is repeated at once while there are more posts, and raises at most 100 Events, and 300 an hour", () =>
    Effect.gen(function* () {
      let posts = 0
      const received = (count: number): Poll["received"] =>
        Array.from({ length: count }, () => {
          const [uri, at] = [`https://platform.example/${posts++}`, new Date(1_800_000_000_000)]
          const author = { author: "grace", author_id: "2", author_name: null }
          const post = { uri, url: uri, ...author, text: "hello", reply_to: null, created_at: at }
          return { kind: "mention", key: uri, post, at } as const
        })
      script()
      const { id, org_id, actor } = yield* scriptedIdentity("many")
      yield* marked(id)
      const polls: Array<number> = []
      const poll = Effect.map(Clock.currentTimeMillis, (now) => {
        polls.push(now)
        return { received: received(101), mark: `mark ${polls.length}`, more: true }
      })
      script({ poll: () => poll })
      const mentions = Effect.map(eventsOf(id, "connector.mention"), (events) => events.length)
      yield* TestClock.setTime((yield* rowOf(id))!.poll_due_at!.getTime())
      const { value } = yield* waitUntil(rowOf(id), (row) => row?.last_error != null, "50 millis")
      expect(value).toMatchObject({ mark: "mark 3", last_error: expect.stringContaining("More than 300 posts") })
      expect([polls.length, yield* mentions]).toEqual([3, 300])
      expect(polls[2]! - polls[0]!).toBeLessThan(Timing.pollSoonestMillis)
      const wait = value!.poll_due_at!.getTime() - (yield* Clock.currentTimeMillis)
      expect(Math.abs(wait - Timing.pollLongestMillis)).toBeLessThan(5_000)
      // The posts of the next hour are reported from the same position.
      yield* waitUntil(rowOf(id), (row) => row?.mark !== "mark 3", "1 minute")
      expect(polls[3]! - polls[0]!).toBeGreaterThanOrEqual(60 * 60_000)
      yield* through(actor.Disconnect({ org_id }))
    }),
  )
})

layer(scriptedActors)("a refresh of a credential", (it) => {
  const began = (id: string) =>
    Effect.map(
      rows<{ refresh_began_at: Date | null }>((sql) => sql`select * from connector where identity_id = ${id}`),
      ([row]) => row!.refresh_began_at,
    )

  it.effect("may be repeated at once if no token was spent, and after 30 seconds otherwise", () =>
    Effect.gen(function* () {
      script()
      const { id, org_id, handle, actor } = yield* scriptedIdentity("refresh")
      yield* marked(id)
      /** Runs a refresh; returns its outcome, and whether it ran. */
      const refresh = Effect.fnUntraced(function* (run: Effect.Effect<unknown, Failure.PlatformFailure>) {
        let ran = false
        let outcome = "done"
        script(
          reading(({ exclusively }) =>
            exclusively(
              Effect.andThen(
                Effect.sync(() => (ran = true)),
                run,
              ),
            ).pipe(Effect.catch((failure) => Effect.sync(() => (outcome = failure._tag)))),
          ),
        )
        yield* through(actor.ReadPosts({ org_id, of: "posts", limit: 1, cursor: null }))
        return [ran, outcome]
      })
      const [limited, outage, refusal] = passing.map(([, failure]) => failure)
      for (const [failure, tag] of [
        [limited, "PlatformRateLimited"],
        [refusal, "PlatformRefused"],
        [refused, "CredentialRefused"],
        [Effect.void, "done"],
      ] as const) {
        expect(yield* refresh(failure!)).toEqual([true, tag])
        expect([tag, yield* began(id)]).toEqual([tag, null])
      }
      expect(yield* refresh(outage!)).toEqual([true, "PlatformUnreachable"])
      const at = yield* began(id)
      expect(at).not.toBe(null)
      expect(yield* refresh(Effect.void)).toEqual([false, "PlatformUnreachable"])
      yield* TestClock.adjust(Timing.refreshDoubtMillis - 1)
      expect(yield* refresh(Effect.void)).toEqual([false, "PlatformUnreachable"])
      expect(yield* began(id)).toEqual(at)
      yield* TestClock.adjust(1)
      expect(yield* refresh(Effect.void)).toEqual([true, "done"])
      expect(yield* began(id)).toBe(null)
      // No refresh has spent the token of a new connection.
      expect(yield* refresh(outage!)).toEqual([true, "PlatformUnreachable"])
      script()
      yield* login(handle, org_id)
      expect(yield* refresh(Effect.void)).toEqual([true, "done"])
    }),
  )

  it.effect("stores its credential for the next call, but not in a connection that was replaced meanwhile", () =>
    Effect.gen(function* () {
      script()
      const { org_id, handle, actor } = yield* scriptedIdentity("stores")
      const read = () => through(actor.ReadPosts({ org_id, of: "posts", limit: 1, cursor: null }))
      const seen: Array<string> = []
      const look = reading(({ credential }) =>
        Effect.orDie(Effect.map(credential, (found) => void seen.push(Redacted.value(found)))),
      )
      script(look)
      yield* read()
      const again = Effect.orDie(login(handle, org_id))
      for (const isReplaced of [false, true]) {
        const context = yield* Effect.context<never>()
        script(
          reading(({ exclusively, storeCredential }) =>
            exclusively(
              Effect.andThen(
                isReplaced ? Effect.provideContext(again as Effect.Effect<void>, context) : Effect.void,
                storeCredential(Redacted.make("second")),
              ),
            ).pipe(Effect.catch((failure) => Effect.sync(() => void seen.push(failure._tag)))),
          ),
        )
        yield* read()
        script(look)
        yield* read()
      }
      expect(seen).toEqual(["first", "second", "Halted", "first"])
    }),
  )
})

layer(scriptedActors)("a platform that does not respond", (it) => {
  it.effect("ends every call before the caller stops waiting, with the reason", () =>
    Effect.gen(function* () {
      script()
      const { org_id, actor } = yield* scriptedIdentity("silent")
      const allowed = Effect.succeed({ ...status, capabilities: ["post", "dm"] as const })
      const kept = { url: "https://platform.example/", state: "state", kept: Redacted.make(""), instanceRules: [] }
      const disclosing = { org_id, account: "ada", password: "password", apply_disclosure: true }
      const finish = { org_id, state: "state", query: "", apply_disclosure: false }
      const publish = (to?: string) =>
        Effect.flatMap(newPost({ text: "hello", ...(to === undefined ? {} : { to }) }), (post) =>
          through(actor.Publish({ org_id, ...post })),
        )
      const cases: Readonly<Record<string, Effect.Effect<unknown, object>>> = {
        login: through(actor.Login({ ...disclosing, apply_disclosure: false })),
        authorize: through(actor.Authorize({ org_id })),
        finish: Effect.andThen(through(actor.Authorize({ org_id })), through(actor.Finish(finish))),
        disclose: through(actor.Login(disclosing)),
        inspect: through(actor.Login(disclosing)),
        posts: through(actor.ReadPosts({ org_id, of: "posts", limit: 1, cursor: null })),
        post: publish(),
        sendDm: Effect.andThen(through(actor.Login(disclosing)), publish("grace")),
      }
      for (const [name, command] of Object.entries(cases)) {
        script({ authorize: () => Effect.succeed(kept), inspect: () => allowed, [name]: () => Effect.never })
        const ended = yield* awaitFiber(yield* Effect.forkChild(Effect.flip(command)), "1 second")
        const problem = { code: "connector_platform_error", detail: `Mastodon: ${noResponse}` }
        expect([name, ended]).toMatchObject([name, { _tag: "Success", value: problem }])
      }
    }),
  )
})

layer(scriptedActors)("a call that the credential does not allow", (it) => {
  it.effect("is refused before it reaches the platform", () =>
    Effect.gen(function* () {
      script()
      const { org_id, actor } = yield* scriptedIdentity("narrow")
      const page = { org_id, limit: 1, cursor: null }
      const publish = (target: { readonly to: string } | { readonly reply_to: string }) =>
        Effect.flatMap(newPost({ text: "hello", ...target }), (post) => actor.Publish({ org_id, ...post }))
      const cases: ReadonlyArray<readonly [capability: string, Effect.Effect<unknown, object>]> = [
        ["thread", through(actor.ReadThread({ org_id, uri: "https://platform.example/1" }))],
        ["notifications", through(actor.ReadNotifications(page))],
        ["dm", through(actor.ReadPosts({ ...page, of: "dms" }))],
        ["dm", through(publish({ to: "grace" }))],
        ["reply", through(publish({ reply_to: "https://platform.example/1" }))],
      ]
      for (const [capability, command] of cases) {
        expect(yield* Effect.flip(command)).toMatchObject({
          code: "connector_capability_unsupported",
          detail: expect.stringContaining(`the capability ${capability}: Mastodon`),
        })
      }
    }),
  )
})
