import { Effect, Layer, Option } from "effect"
import { NodeRuntime } from "@effect/platform-node"
import { load } from "./serve/Settings.ts"
import * as Serve from "./serve/Serve.ts"
const program = Effect.gen(function*() {
  const settings = yield* load
  return Serve.layer(settings, { url: Option.getOrThrow(settings.databaseUrl) }, new Set(["api","actors"]))
})
Layer.launch(Layer.unwrap(program)).pipe(NodeRuntime.runMain)
