/** Authorization requests and their ownership. */
import { expect, layer } from "@effect/vitest"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { Writes } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Layer } from "effect"
import { makeOrg, storesLayer } from "../harness/Stores.ts"

layer(Layer.provideMerge(OAuthRequests.layer, storesLayer))("Authorization request", (it) => {
  it.effect("belongs to the session that opened it; another session can neither answer nor deny it", () =>
    Effect.gen(function* () {
      const requests = yield* OAuthRequests
      const org = yield* makeOrg
      const [own, other] = [yield* makeUuidV7, yield* makeUuidV7]
      for (const id of [own, other])
        yield* Effect.flatMap(
          Writes,
          (sql) => sql`insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
          values (${id}, ${org}, sha256(${id}::text::bytea), now(), now(), now() + interval '1 day')`,
        )
      const { id } = yield* requests.open("client_id=a", own)
      expect(yield* requests.claim(id, other, undefined)).toBeUndefined()
      expect(yield* requests.close(id, other)).toBe(false)
      expect(yield* requests.claim(id, own, undefined)).toMatchObject({ id })
      expect(yield* requests.close(id, own)).toBe(true)
      expect(yield* requests.close(id, own)).toBe(false)
    }),
  )
})
