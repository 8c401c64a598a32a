import { Addresses } from "@svc/domain/Addresses"
import { ProblemRendering } from "@svc/domain/problems/ProblemRendering"
import * as Rendering from "@svc/api/problems/ProblemRendering"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"

const book = Layer.succeed(Addresses, { baseUrl: "https://api.example" } as Addresses["Service"])

layer(Rendering.layer.pipe(Layer.provide(book)))("Request", (it) => {
  it.effect("to an actor that is cut off fails like one that times out", () =>
    Effect.gen(function* () {
      const rendering = yield* ProblemRendering
      const response = yield* rendering(Effect.interrupt, {
        endpoint: { path: "/" },
        group: { identifier: "health" },
      } as never).pipe(Effect.provideContext(Context.empty() as Context.Context<any>))
      expect(response.status).toBe(503)
      expect(response.body._tag).toBe("Uint8Array")
      const text = response.body._tag === "Uint8Array" ? new TextDecoder().decode(response.body.body) : "{}"
      expect(JSON.parse(text)).toMatchObject({ code: "unavailable", agent_hint: "wait" })
    }),
  )
})
