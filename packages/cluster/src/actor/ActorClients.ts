/**
 * The clients of actors as the service has them: what a message is called, and under what it is sent.
 *
 * The library's clients hand out effects that say nothing of their message; whoever asks counts them by name (`Ask`). Names
 * are those of the protocols, so there are few.
 *
 * The library makes an actor in the context of whoever asked it first, and keeps that as long as the actor: of a caller over
 * HTTP that is the request with its sockets' answer and its body, half of what an actor took. So a message is sent with
 * nothing of whoever asks but its trace ({@link Surroundings}).
 */
import { Context, Effect, References, Tracer } from "effect"
import { ClusterSchema, type Sharding } from "effect/cluster"
import { ambientOf } from "./MessageContext.ts"

const names = new WeakMap<object, string>()

/** What the library's `Entity` has of this. */
interface Kind<Client> {
  readonly client: Effect.Effect<(id: string) => Client, never, Sharding.Sharding>
  readonly annotate: (key: typeof ClusterSchema.ClientTracingEnabled, value: boolean) => Kind<Client>
}

/** A client whose messages can be told apart: `Identity.ReceiveMail`. */
export const namedClient = <Client extends object>(
  kind: string,
  entity: Kind<Client>,
): Effect.Effect<(id: string) => Client, never, Sharding.Sharding> =>
  Effect.gen(function* () {
    const process = yield* Effect.context<never>()
    // Where no trace leaves, no message makes a span.
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
            // Its client is whole: a message wants nothing more of whoever asks.
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

/** What a message of such a client is called; `other` for any other effect. */
export const nameOf = (message: object): string => names.get(message) ?? "other"
