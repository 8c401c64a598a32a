/**
 * Clients of actors: the name of each message, and the context that it is sent with.
 *
 * The library's clients return effects that do not say which message they send. `Ask` counts messages by name, so
 * `namedClient` remembers the name of each effect. Names come from the protocols, so there are few.
 *
 * The library creates an actor in the context of its first caller and keeps that context as long as the actor. For a
 * caller over HTTP that context holds the request, its socket and its body, which was half of an actor's memory. A
 * message is therefore sent with nothing of the caller's context except its trace ({@link MessageContext}).
 */
import { Context, Effect, References, Tracer } from "effect"
import { ClusterSchema, type Sharding } from "effect/cluster"
import { ambientOf } from "./MessageContext.ts"

const names = new WeakMap<object, string>()

/** The part of the library's `Entity` that a client needs. */
interface Kind<Client> {
  readonly client: Effect.Effect<(id: string) => Client, never, Sharding.Sharding>
  readonly annotate: (key: typeof ClusterSchema.ClientTracingEnabled, value: boolean) => Kind<Client>
}

/** Creates a client whose messages have names such as `Identity.ReceiveMail`. */
export const namedClient = <Client extends object>(
  kind: string,
  entity: Kind<Client>,
): Effect.Effect<(id: string) => Client, never, Sharding.Sharding> =>
  Effect.gen(function* () {
    const process = yield* Effect.context<never>()
    // Without a trace exporter, messages create no spans.
    const isTraced = yield* References.TracerEnabled
    const of = yield* (isTraced ? entity : entity.annotate(ClusterSchema.ClientTracingEnabled, false)).client
    const labels = new Map<string, string>()
    const labelOf = (tag: string) => {
      let label = labels.get(tag)
      if (label === undefined) labels.set(tag, (label = `${kind}.${tag}`))
      return label
    }
    const sent = apartFrom(process, isTraced)
    return (id: string) =>
      new Proxy(of(id), {
        get: (client, tag) => {
          const method: unknown = Reflect.get(client, tag)
          if (typeof method !== "function" || typeof tag !== "string") return method
          return (...args: ReadonlyArray<unknown>): unknown => {
            const message: unknown = Reflect.apply(method, client, args)
            if (!Effect.isEffect(message)) return message
            // The client already has its services, so the message needs nothing from the caller's context.
            const apart = sent(message as Effect.Effect<unknown, unknown>)
            names.set(apart, labelOf(tag))
            return apart
          }
        },
      })
  })

const apartFrom = (process: Context.Context<never>, isTraced: boolean) => {
  const around = ambientOf(process)
  return (message: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> => {
    if (!isTraced) return Effect.setContext(message, around)
    return Effect.withFiber((fiber) => {
      const span = Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
      return Effect.setContext(message, span === undefined ? around : Context.add(around, Tracer.ParentSpan, span))
    })
  }
}

/** Returns the name of a client's message, or `other` for any other effect. */
export const nameOf = (message: object): string => names.get(message) ?? "other"
