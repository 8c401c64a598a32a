/**
 * The floor: the minimum cost of an authenticated, typed endpoint on this stack. Uses Effect's HttpApi, a bearer
 * middleware, a path parameter and a response of an Identity's size, without a database or code of the service. Runs in
 * its own process and prints its port. The CPU cost of requests is reported as a multiple of the floor.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import {
  HttpApi,
  HttpApiBuilder,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSecurity,
} from "effect/http-api"

const Moment = Schema.NullOr(Schema.Date)

const Answer = Schema.Struct({
  id: Schema.String,
  handle: Schema.String,
  status: Schema.String,
  email: Schema.String,
  profile_url: Schema.String,
  card_url: Schema.String,
  tunnel: Schema.Struct({
    hostname: Schema.String,
    port: Schema.NullOr(Schema.Number),
    url: Schema.String,
    connected: Schema.Boolean,
  }),
  saga: Schema.Struct({
    kind: Schema.String,
    status: Schema.String,
    steps: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        status: Schema.String,
        attempts: Schema.Number,
        error: Schema.NullOr(Schema.String),
        finished_at: Moment,
      }),
    ),
    started_at: Schema.Date,
    finished_at: Moment,
  }),
  created_at: Schema.Date,
})

class Who extends Context.Service<Who, { readonly token: string }>()("@svc/test/bench/Who") {}

class Bearer extends HttpApiMiddleware.Service<Bearer, { provides: Who }>()("@svc/test/bench/Bearer", {
  security: { bearer: HttpApiSecurity.bearer },
}) {}

const api = HttpApi.make("floor").add(
  HttpApiGroup.make("identities").add(
    HttpApiEndpoint.get("get", "/api/identities/:handle", {
      params: { handle: Schema.String },
      success: Answer,
    }).middleware(Bearer),
  ),
)

const now = new Date()
const identity = (handle: string): typeof Answer.Type => ({
  id: "0198f0a2-0000-7000-8000-000000000000",
  handle,
  status: "ready",
  email: `${handle}@mail.localhost`,
  profile_url: `http://localhost:8080/@${handle}`,
  card_url: `http://localhost:8080/@${handle}/agent-card.json`,
  tunnel: {
    hostname: `${handle}.tunnel.localhost`,
    port: 20_000,
    url: `http://${handle}.tunnel.localhost:8081`,
    connected: false,
  },
  saga: {
    kind: "provisioning",
    status: "completed",
    steps: ["mailbox", "tunnel", "card", "identity_key"].map((name) => ({
      name,
      status: "done",
      attempts: 1,
      error: null,
      finished_at: now,
    })),
    started_at: now,
    finished_at: now,
  },
  created_at: now,
})

const bearer = Layer.succeed(Bearer, {
  bearer: (handler, { credential }) => Effect.provideService(handler, Who, { token: Redacted.value(credential) }),
})

const identities = HttpApiBuilder.group(api, "identities", (handlers) =>
  handlers.handle("get", ({ params }) => Effect.map(Who, () => identity(params.handle))),
)

const announce = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    if (address._tag !== "UnixPathAddress") console.log(address.port)
  }),
)

HttpRouter.serve(HttpApiBuilder.layer(api).pipe(Layer.provide(identities), Layer.provide(bearer)), {
  disableLogger: true,
  disableListenLog: true,
}).pipe(
  Layer.merge(announce),
  Layer.provide(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
  Layer.launch,
  NodeRuntime.runMain,
)
