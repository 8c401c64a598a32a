import type { BufferedRequest, BufferedResponse } from "@svc/cluster/net/BufferedResponse"
import { GuardedClient, RequestFailed } from "@svc/cluster/net/GuardedClient"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { awaitFiber } from "../harness/Actors.ts"
import { storesLayer } from "../harness/Stores.ts"

const quotas = {
  profile: 3,
  hits: 3,
  device: 3,
  contact: 4,
  magic_link: 4,
  oauth_register: 3,
  oauth_authorize: 3,
  oauth_token: 3,
  oauth_token_failed: 3,
  oauth_document: 3,
}

/** A host name that resolves to the local host. */
const clients = OAuthClients.layer.pipe(
  Layer.provide([
    PublicLimits.layer(quotas),
    GuardedClient.layer({
      allowPrivate: false,
      resolve: (_, done) => done(null, [{ address: "10.0.0.1", family: 4 }]),
    }),
  ]),
  Layer.provideMerge(storesLayer),
)

layer(clients)("Client document", (it) => {
  it.effect("at a private address is not fetched", () =>
    Effect.gen(function* () {
      const { read } = yield* OAuthClients
      const refused = yield* Effect.flip(read("https://inside.example/client.json"))
      expect(refused).toMatchObject({ _tag: "DocumentRefused", message: expect.stringContaining("refused_address") })
    }),
  )

  it.effect("that cannot be fetched any more is used for a week", () =>
    Effect.gen(function* () {
      const { read } = yield* OAuthClients
      const sql = yield* Writes
      const now = yield* Clock.currentTimeMillis
      const day = 86_400_000
      const clientFetched = Effect.fnUntraced(function* (host: string, days: number) {
        const id = `https://${host}/client.json`
        const at = new Date(now - days * day)
        yield* sql`
          insert into oauth_client (id, name, redirects, seen_at, fetched_at, fresh_until)
          values (${id}, 'Doc', ${["http://localhost/cb"]}, ${at}, ${at}, ${at})`
        return id
      })
      expect(yield* read(yield* clientFetched("recent.example", 6))).toMatchObject({ name: "Doc" })
      const refused = yield* Effect.flip(read(yield* clientFetched("gone.example", 8)))
      expect(refused).toMatchObject({ _tag: "DocumentRefused" })
    }),
  )

  it.effect("is fetched from one host at most as often as the limit allows", () =>
    Effect.gen(function* () {
      const { read } = yield* OAuthClients
      const messages = yield* Effect.forEach([1, 2, 3, 4], (n) =>
        Effect.map(Effect.flip(read(`https://busy.example/${n}.json`)), (refused) => String(refused)),
      )
      expect(messages.map((text) => text.includes("too often"))).toEqual([false, false, false, true])
    }),
  )
})

/** The response of a document's address, and the number of requests. */
const answering: { asked: number; answer: Effect.Effect<BufferedResponse, RequestFailed> } = {
  asked: 0,
  answer: Effect.never,
}
const documents = OAuthClients.layer.pipe(
  Layer.provide([
    PublicLimits.layer({ ...quotas, oauth_document: 100 }),
    Layer.succeed(GuardedClient, {
      ask: (_url: URL, { atMost }: BufferedRequest) =>
        Effect.suspend(() => {
          expect(atMost).toBe(5 * 1024)
          answering.asked++
          return answering.answer
        }),
    } as unknown as GuardedClient["Service"]),
  ]),
  Layer.provideMerge(storesLayer),
)

layer(documents)("Client document that was fetched", (it) => {
  const id = "https://app.example/client.json"
  const body = (more: object = {}) => ({
    client_id: id,
    client_name: "App",
    redirect_uris: ["https://app.example/1"],
    ...more,
  })
  const says = (document: unknown, headers: Record<string, string> = {}, status = 200) => {
    const text = typeof document === "string" ? document : JSON.stringify(document)
    answering.answer = Effect.succeed({
      status,
      headers: new Headers({ "content-type": "application/json", ...headers }),
      body: Buffer.from(text),
    })
  }
  const read = Effect.flatMap(OAuthClients, ({ read }) => read(id))
  const refusal = Effect.map(Effect.flip(read), (refused) => String("message" in refused ? refused.message : refused))

  it.effect("is refused with the reason if it does not describe the client", () =>
    Effect.gen(function* () {
      const reason = (given: () => void) => Effect.andThen(Effect.sync(given), refusal)
      expect(yield* reason(() => says(body(), {}, 404))).toMatch(/responded with status 404/)
      expect(yield* reason(() => says(body(), {}, 302))).toMatch(/responded with status 302/)
      expect(yield* reason(() => says("{"))).toMatch(/not valid JSON/)
      expect(yield* reason(() => says(body(), { "content-type": "text/html" }))).toMatch(/not valid JSON/)
      expect(yield* reason(() => says(body({ client_id: `${id}?x` })))).toMatch(/differs from its address/)
      const fails = (error: RequestFailed["error"]) => () =>
        void (answering.answer = Effect.fail(new RequestFailed({ error, durationMs: 1 })))
      expect(yield* reason(fails("too_large"))).toMatch(/longer than 5120 bytes/)
      expect(yield* reason(fails("dns"))).toMatch(/cannot be reached \(dns\)/)
      answering.answer = Effect.never
      const late = yield* Effect.forkChild(refusal)
      expect(yield* Effect.flatten(awaitFiber(late, Timing.documentTimeoutMillis))).toMatch(/did not respond in time/)
    }),
  )

  it.effect("that changed replaces all that is stored of it", () =>
    Effect.gen(function* () {
      says(body())
      yield* read
      yield* TestClock.adjust("2 days")
      says(
        body({ client_name: "New", redirect_uris: ["https://app.example/2"], id_token_signed_response_alg: "ES256" }),
      )
      const changed = yield* read
      expect(changed).toMatchObject({
        name: "New",
        redirects: ["https://app.example/2"],
        idTokenAlgorithm: "ES256",
      })
      answering.answer = Effect.never
      expect(yield* read).toEqual(changed)
    }),
  )

  it.effect("is used for as long as it says, between 5 minutes and a day, and then replaced", () =>
    Effect.gen(function* () {
      /** Reads the document, and returns how long the next reads do not ask for it again, in minutes. */
      const freshMinutes = Effect.fnUntraced(function* (version: number, headers: Record<string, string>) {
        yield* TestClock.adjust("2 days")
        says(body({ client_name: `App ${version}`, redirect_uris: [`https://app.example/${version}`] }), headers)
        expect(yield* read).toMatchObject({ name: `App ${version}`, redirects: [`https://app.example/${version}`] })
        const asked = answering.asked
        for (let minutes = 1; ; minutes++) {
          yield* TestClock.adjust("1 minute")
          // The new document is stored.
          expect(yield* read).toMatchObject({ name: `App ${version}`, describedBy: "app.example" })
          if (answering.asked > asked) return minutes
        }
      })
      expect(yield* freshMinutes(1, {})).toBe(5)
      expect(yield* freshMinutes(2, { "cache-control": "public, max-age=600" })).toBe(10)
      // Changed again within an hour.
      says(body({ client_name: "App 3" }), { "cache-control": "max-age=60" })
      yield* TestClock.adjust("10 minutes")
      yield* read
      answering.answer = Effect.never
      expect(yield* read).toMatchObject({ name: "App 3", redirects: ["https://app.example/1"] })
    }),
  )
})

layer(documents)("A registered client", (it) => {
  it.effect("that registers again is the same one, and was seen then, to the hour", () =>
    Effect.gen(function* () {
      const [clients, sql] = [yield* OAuthClients, yield* Writes]
      const details = { name: "App", redirects: ["http://localhost/cb"], idTokenAlgorithm: null }
      const seen = Effect.gen(function* () {
        const { id } = yield* clients.register(details)
        const [row] = yield* sql<{ seen_at: Date }>`select seen_at from oauth_client where id = ${id}`
        return row!.seen_at.getTime()
      })
      const first = yield* seen
      yield* TestClock.adjust("1 hour")
      expect((yield* seen) - first).toBe(0)
      yield* TestClock.adjust("1 second")
      expect((yield* seen) - first).toBe(3_601_000)
    }),
  )
})
