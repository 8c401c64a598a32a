/**
 * The clients of actors as the service has them: what a message is called, and under what it is sent.
 *
 * The library's clients hand out effects that say nothing of their message; whoever asks counts them by name (`Ask`). Names
 * are those of the protocols, so there are few.
 *
 * The library makes an actor in the context of whoever asked it first, and keeps that as long as the actor: of a caller over
 * HTTP that is the request with its sockets' answer and its body, half of what an actor took. So a message of such a caller
 * is sent in the context of the process, with no more of the caller than its trace.
 */
import { Context, Effect, Tracer } from "effect"
import { HttpServerRequest } from "effect/http"

const names = new WeakMap<object, string>()

/** A client whose messages can be told apart: `Identity.ReceiveMail`. */
export const named = <Client extends object>(
  kind: string,
  of: (id: string) => Client,
): Effect.Effect<(id: string) => Client> =>
  Effect.map(Effect.context<never>(), (process) => {
    const labels = new Map<string, string>()
    const labelOf = (tag: string) => {
      let label = labels.get(tag)
      if (label === undefined) labels.set(tag, (label = `${kind}.${tag}`))
      return label
    }
    const apart = apartFrom(process)
    return (id) =>
      new Proxy(of(id), {
        get: (client, tag) => {
          const method: unknown = Reflect.get(client, tag)
          if (typeof method !== "function" || typeof tag !== "string") return method
          return (...args: ReadonlyArray<unknown>): unknown => {
            const message: unknown = Reflect.apply(method, client, args)
            if (!Effect.isEffect(message)) return message
            // Its client is whole: a message wants nothing more of whoever asks.
            const sent = apart(message as Effect.Effect<unknown, unknown>)
            names.set(sent, labelOf(tag))
            return sent
          }
        },
      })
  })

const apartFrom =
  (process: Context.Context<never>) =>
  (message: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> =>
    Effect.withFiber((fiber) => {
      if (Context.getOrUndefined(fiber.context, HttpServerRequest.HttpServerRequest) === undefined) return message
      const span = Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
      return Effect.setContext(message, span === undefined ? process : Context.add(process, Tracer.ParentSpan, span))
    })

/** What a message of such a client is called; `other` for any other effect. */
export const nameOf = (message: object): string => names.get(message) ?? "other"
