/**
 * Requests with little luggage. Handlers take the services they need when they are made; a request carries what is its
 * own and what the libraries look for. The library merges the context of a handler into that of each request, so with
 * every service of the process in both, copying them was a sixth of what a request cost.
 */
import { Addresses } from "@svc/domain/Addresses"
import { Authorization, Open, RealmAuthorization, SubjectAuthorization } from "@svc/domain/account/Authorization"
import { ProblemRendering } from "@svc/domain/problems/ProblemRendering"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Context, Effect, Layer, Scope } from "effect"
import { HttpRouter, HttpServer, type HttpServerError } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"

/** A parameter may be as long as the head of a request, so that endpoints judge it; a slash too many is another path. */
const routerConfig = { maxParamLength: 16_384, ignoreDuplicateSlashes: false, ignoreTrailingSlash: false }

type Keys = ReadonlyArray<{ readonly key: string }>

const keyed = (keys: Keys) => new Set(keys.map(({ key }) => key))

/** What a group of handlers is served with: the middlewares of its endpoints, and what building a layer takes. */
const ofGroup = keyed([
  Authorization,
  SubjectAuthorization,
  RealmAuthorization,
  Open,
  ProblemRendering,
  Layer.CurrentMemoMap,
  Scope.Scope,
])

/** What pages ask for while a request runs. */
type OfPages = Addresses | CredentialLookup
const ofPages = keyed([Addresses, CredentialLookup])

const keep = <A>(context: Context.Context<A>, which: (key: string) => boolean): Context.Context<A> =>
  Context.makeUnsafe(new Map([...context.mapUnsafe].filter(([key]) => which(key))))

/** Handlers of a group of endpoints (`HttpApiBuilder.group`), made with every service and served with few. */
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

/** Where requests come from; it listens from when it is built. */
export type Listener = Layer.Layer<HttpServer.HttpServer, HttpServerError.ServeError>

/**
 * Serves the routes of a layer; a request has none of our services but those that pages ask for, and `settings`. The
 * listener is built when the routes stand, since a request that comes before them would wait for ever.
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
