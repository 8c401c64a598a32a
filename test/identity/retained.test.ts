import { layer } from "@effect/vitest"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { actors, identityOf, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

layer(actors())("an actor in memory", (it) => {
  it.effect("retains nothing of the request that activated it", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const [identity_id, handle] = [yield* makeUuidV7, newHandle("ada")]
      const handleRequest = (request: HttpServerRequest.HttpServerRequest) =>
        Effect.gen(function* () {
          const actor = (yield* Identities).of(handle)
          yield* ask(actor.Create({ org_id, identity_id, handle }))
          return new WeakRef(request)
        }).pipe(Effect.provideService(HttpServerRequest.HttpServerRequest, request))
      const request = yield* Effect.suspend(() =>
        handleRequest(HttpServerRequest.fromWeb(new Request("http://localhost/api/identities"))),
      )
      yield* waitUntil(identityOf(handle), (row) => row?.status === "ready", 0)
      // A timer callback is a new turn of the event loop; the previous turn may hold objects until it ends.
      const isCollected = Effect.promise(async () => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        collect()
        return request.deref() === undefined
      })
      yield* waitUntil(isCollected, (isGone) => isGone, 0)
    }),
  )
})
