/**
 * Keeps the context of a request small. Handlers resolve their services when they are built; a request only carries its
 * own state and what the libraries look up. The library merges the handler's context into every request, and with all
 * services in both that copying took a sixth of the time of a request.
 */
import { Addresses } from "@svc/domain/Addresses"
import { Authorization, Open, RealmAuthorization, SubjectAuthorization } from "@svc/domain/account/Authorization"
import { ProblemRendering } from "@svc/domain/problems/ProblemRendering"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Context, Effect, Layer, Scope } from "effect"
import { HttpRouter, HttpServer, type HttpServerError } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"

/** A parameter may be as long as the request head, so that endpoints validate it; an extra slash makes another path. */
const routerConfig = { maxParamLength: 16_384, ignoreDuplicateSlashes: false, ignoreTrailingSlash: false }

type Keys = ReadonlyArray<{ readonly key: string }>

const keyed = (keys: Keys) => new Set(keys.map(({ key }) => key))

/** The services of a group's handlers: the middleware of its endpoints, and what building the layer needs. */
const ofGroup = keyed([
  Authorization,
  SubjectAuthorization,
  RealmAuthorization,
  Open,
  ProblemRendering,
  Layer.CurrentMemoMap,
  Scope.Scope,
])

/** Services that pages need while a request runs. */
type OfPages = Addresses | CredentialLookup
const ofPages = keyed([Addresses, CredentialLookup])

const keep = <A>(context: Context.Context<A>, which: (key: string) => boolean): Context.Context<A> =>
  Context.makeUnsafe(new Map([...context.mapUnsafe].filter(([key]) => which(key))))

/** Builds handlers of a group (`HttpApiBuilder.group`) with every service, and runs them with few. */
export const group = ((api, name, build) =>
  Layer.effectContext(
    Effect.contextWith((services: Context.Context<Scope.Scope>) =>
      Effect.updateContext(
        Layer.build(
          HttpApiBuilder.group(api, name, (handlers) => {
            const made: unknown = build(handlers)
            return (Effect.isEffect(made) ? Effect.provideContext(made, services) : made) as never
          }),
        ),
        (context: Context.Context<Scope.Scope>) => keep(context, (key) => ofGroup.has(key)),
      ),
    ),
  )) as typeof HttpApiBuilder.group

/** The server, which listens once it is built. */
export type Listener = Layer.Layer<HttpServer.HttpServer, HttpServerError.ServeError>

/**
 * Serves the routes of a layer with only the services that pages need, and `settings`. The server is built after the
 * routes, because a request that arrives before them would hang.
 */
export const serve = <E, R>(
  routes: Layer.Layer<never, E, R>,
  settings: Context.Context<never>,
  listener: Listener,
): Layer.Layer<never, HttpRouter.Request.Without<E> | HttpServerError.ServeError, OfPages | Needed<R>> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const app = yield* Effect.provideService(HttpRouter.toHttpEffect(routes), HttpRouter.RouterConfig, routerConfig)
      const server = Context.get(yield* Layer.build(listener), HttpServer.HttpServer)
      yield* Effect.updateContext(server.serve(app), <A>(context: Context.Context<A>) =>
        Context.merge(
          keep(context, (key) => !key.startsWith("@svc/") || ofPages.has(key)),
          settings,
        ),
      )
    }),
  ) as never

type Needed<R> = Exclude<HttpRouter.Request.Without<R>, HttpRouter.HttpRouter | Scope.Scope>
