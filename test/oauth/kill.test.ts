/**
 * Processes that are killed between a commit and its response, behind a balancer that sends the retry to another process;
 * and two processes that receive the same token concurrently.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import * as Stores from "@svc/cluster/store/Database"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { settingsOf } from "../faults/Store.ts"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process } from "../harness/Deployment.ts"
import { eventually } from "../harness/Service.ts"
import {
  authorizationUrl,
  browser,
  challengeOf,
  obtainTokens,
  mcp,
  registerClient,
  tokenCall,
  verifierOf,
} from "./Consent.ts"

/** One address for all processes; requests go to one of them. */
const balancer = async () => {
  let port = 0
  const open = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1")
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.pipe(to)
      from.on("error", () => to.destroy())
      from.on("close", () => {
        open.delete(from)
        to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    base: `http://localhost:${(server.address() as AddressInfo).port}`,
    to: ({ base }: Process) => {
      port = Number(new URL(base).port)
      for (const socket of open) socket.destroy()
    },
    stop: () => {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}

const here = "http://localhost:4711/callback"
let deployment: Deployment
let front: Awaited<ReturnType<typeof balancer>>
let api: Process
let session: string
beforeAll(async () => {
  front = await balancer()
  deployment = await deploy()
  await deployment.start(["actors"], { SVC_BASE_URL: front.base })
  await another()
  session = (await signUp(front.base)).session
  await makeIdentity(front.base, session, newHandle("ada"))
})
afterAll(async () => {
  front.stop()
  await deployment.stop()
})

/** Starts another process and directs requests to it. */
const another = async () => {
  api = await deployment.start(["api"], { SVC_BASE_URL: front.base })
  front.to(api)
}

const inStore = <A, E>(work: (sql: Stores.Unhurried["Service"]) => Effect.Effect<A, E>) =>
  Effect.runPromise(
    Effect.flatMap(Stores.Unhurried, work).pipe(Effect.provide(Layer.fresh(Stores.layer(settingsOf(deployment))))),
  )
const count = (statement: string) =>
  inStore((sql) => Effect.map(sql.unsafe<{ n: number }>(statement), ([row]) => row!.n))

/** Sends a request that a lock blocks at a certain point, then kills the process. No client receives a response. */
const killed = async (asking: () => Promise<unknown>, lock: string, reached: () => Promise<boolean>) => {
  const answer = await inStore((sql) =>
    Effect.gen(function* () {
      const held = yield* Deferred.make<void>()
      const over = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql.unsafe(lock)
            yield* Deferred.succeed(held, undefined)
            yield* Deferred.await(over)
          }),
        ),
      )
      yield* Deferred.await(held)
      const outcome = asking().then(
        () => "answered",
        () => "broken",
      )
      yield* Effect.promise(() => eventually(reached, (is) => is))
      api.signal("SIGKILL")
      yield* Effect.promise(() => api.exited)
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holder)
      return yield* Effect.promise(() => outcome)
    }),
  )
  expect(answer).toBe("broken")
  await another()
}
/** The first write after the commit is its audit record. */
const record = "lock table audit in exclusive mode"

const clientOf = async () => (await registerClient(front.base, [here], newHandle("client"))).body["client_id"] as string
const person = () => browser(front.base, session)
const refreshing = (client: string, refresh_token: string, base = front.base) =>
  tokenCall(base, { grant_type: "refresh_token", client_id: client, refresh_token })
const works = async (token: string) => (await mcp(front.base, token, "tools/list")).status === 200
const grantsOf = async (client: string) =>
  (await call(front.base, "GET", "/api/grants", { token: session })).body.grants.filter(
    (one: { client_id: string }) => one.client_id === client,
  )
const used = (client: string, kind: string, pairs: number) => async () =>
  (await count(
    `select count(*)::int as n from oauth_token t join client_grant g on g.id = t.grant_id
     where g.client_id = '${client}' and t.kind = '${kind}' and t.pairs = ${pairs}`,
  )) > 0

describe("Killed process", () => {
  it("after the use of a code leaves no valid code, and a new authorization works", async () => {
    const client = await clientOf()
    const verifier = verifierOf()
    const back = await person().allow(
      authorizationUrl(front.base, { client, redirect: here, challenge: challengeOf(verifier) }),
    )
    const exchange = {
      grant_type: "authorization_code",
      client_id: client,
      redirect_uri: here,
      code: back.searchParams.get("code")!,
      code_verifier: verifier,
    }
    await killed(() => tokenCall(front.base, exchange), record, used(client, "code", 1))
    const repeated = await tokenCall(front.base, exchange)
    expect([repeated.status, repeated.body["error"]]).toEqual([400, "invalid_grant"])
    const anew = await obtainTokens(front.base, person(), client, here)
    expect([anew.answer.status, await works(anew.access)]).toEqual([200, true])
    expect((await refreshing(client, anew.refresh)).status).toBe(200)
    expect(await grantsOf(client)).toHaveLength(1)
  })

  it("after a rotation leaves the client's token usable", async () => {
    const client = await clientOf()
    const first = await obtainTokens(front.base, person(), client, here)
    await killed(() => refreshing(client, first.refresh), record, used(client, "refresh", 1))
    const repeated = await refreshing(client, first.refresh)
    expect([repeated.status, await works(repeated.body["access_token"])]).toEqual([200, true])
    const next = await refreshing(client, repeated.body["refresh_token"])
    expect([next.status, await works(next.body["access_token"])]).toEqual([200, true])
    // Outside the window, a reuse of the first token counts as theft.
    await inStore((sql) => sql`update oauth_token set first_used_at = first_used_at - interval '61 seconds'`)
    expect((await refreshing(client, first.refresh)).body["error"]).toBe("invalid_grant")
    expect(await works(next.body["access_token"])).toBe(false)
  })

  it("during a rotation leaves the token unchanged", async () => {
    const client = await clientOf()
    const { refresh } = await obtainTokens(front.base, person(), client, here)
    const waits = async () =>
      (await count(`select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`)) > 0
    await killed(
      () => refreshing(client, refresh),
      `select from oauth_token t join client_grant g on g.id = t.grant_id
       where g.client_id = '${client}' and t.kind = 'refresh' for update of t`,
      waits,
    )
    expect(await used(client, "refresh", 1)()).toBe(false)
    const repeated = await refreshing(client, refresh)
    expect([repeated.status, await works(repeated.body["access_token"])]).toEqual([200, true])
    expect(await used(client, "refresh", 1)()).toBe(true)
  })

  it("after a consent leaves one Grant once the user repeats the consent", async () => {
    const client = await clientOf()
    const asking = () => authorizationUrl(front.base, { client, redirect: here, challenge: challengeOf(verifierOf()) })
    await killed(
      () => person().allow(asking()),
      record,
      async () => (await count(`select count(*)::int as n from client_grant where client_id = '${client}'`)) > 0,
    )
    const { access } = await obtainTokens(front.base, person(), client, here)
    expect(await works(access)).toBe(true)
    expect(await grantsOf(client)).toHaveLength(1)
    const codes = await count(
      `select count(*)::int as n from oauth_token t join client_grant g on g.id = t.grant_id
       where g.client_id = '${client}' and t.kind = 'code' and t.first_used_at is null and t.expires_at > now() + interval '60 seconds'`,
    )
    expect(codes).toBe(0)
  })
})

describe("Two processes without certificates", () => {
  it("call each other", async () => {
    const { identity } = await makeIdentity(front.base, session)
    expect(identity.status).toBe("ready")
  })
})

describe("Two processes", () => {
  let two: Process
  beforeAll(async () => {
    two = await deployment.start(["api"], { SVC_BASE_URL: front.base })
  })

  it("that receive one refresh token concurrently issue valid tokens, five pairs at most", async () => {
    const one = api
    const client = await clientOf()
    const { refresh } = await obtainTokens(front.base, person(), client, here)
    const pairs = await Promise.all([one, two, one, two].map(({ base }) => refreshing(client, refresh, base)))
    expect(pairs.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    for (const { body } of pairs) {
      for (const { base } of [one, two]) {
        expect((await mcp(base, body["access_token"], "tools/list")).status).toBe(200)
      }
    }
    expect(await used(client, "refresh", 4)()).toBe(true)
    expect((await refreshing(client, refresh, two.base)).status).toBe(200)
    const sixth = await refreshing(client, refresh, one.base)
    expect(sixth.body["error"]).toBe("invalid_grant")
    for (const { base } of [one, two]) {
      expect((await mcp(base, pairs[0]!.body["access_token"], "tools/list")).status).toBe(200)
    }
  })

  it("that receive one code concurrently redeem it once", async () => {
    const client = await clientOf()
    const verifier = verifierOf()
    const back = await person().allow(
      authorizationUrl(front.base, { client, redirect: here, challenge: challengeOf(verifier) }),
    )
    const form = {
      grant_type: "authorization_code",
      client_id: client,
      redirect_uri: here,
      code: back.searchParams.get("code")!,
      code_verifier: verifier,
    }
    const answers = await Promise.all([api, two, api, two].map(({ base }) => tokenCall(base, form)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const taken = answers.find(({ status }) => status === 200)!
    // A second use of the code counts as theft, so the issued tokens are revoked.
    expect(await works(taken.body["access_token"])).toBe(false)
  })
})
