import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
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
