/**
 * The actors of one kind that are in memory. What serves their messages is made once for all of them, and finds the actor
 * by the address that each message has: a record of handlers for every actor was most of what one at rest took. What an
 * actor needs only now and then is made when it is first wanted.
 */
import { Context, Effect, Scope } from "effect"
import { Entity, type EntityAddress } from "effect/cluster"
import { Rpc } from "effect/rpc"
import type { Ownership } from "./Ownership.ts"

/** What is made for an actor when it is first wanted, under its scope, and kept as long as the actor. */
export interface Part<Resident, A, R> {
  readonly make: (resident: Resident) => Effect.Effect<A, never, R>
}

/** An actor in memory. */
export interface ActorInstance<State> {
  readonly id: string
  readonly ownership: Ownership<State>
}

export interface ActorInstances<State, R> {
  /** The actor whose handlers are being built is in memory from now on. */
  readonly enter: (
    own: (id: string) => Effect.Effect<Ownership<State>, never, R>,
  ) => Effect.Effect<ActorInstance<State>, never, Entity.CurrentAddress | Scope.Scope>
  /**
   * The handlers, each of which runs under the address of its message. Not under what the library runs it with: where one
   * actor asks another of its process, the asking one's address is in that, too, and comes before the asked one's.
   */
  readonly serving: <H extends Handlers>(handlers: H) => H
  /** The actor that the running handler serves. */
  readonly present: Effect.Effect<ActorInstance<State>>
  /** Its ownership. */
  readonly ownership: Ownership<State>
  /** A part of it. */
  readonly part: <A>(part: Part<ActorInstance<State>, A, R | Scope.Scope>) => Effect.Effect<A>
  /** A part of an actor, asked for outside of its handlers. */
  readonly partOf: <A>(
    resident: ActorInstance<State>,
    part: Part<ActorInstance<State>, A, R | Scope.Scope>,
  ) => Effect.Effect<A>
}

/** As the library takes them: what is done for each message. */
type Handlers = Readonly<Record<string, (request: never) => Rpc.WrapperOr<Effect.Effect<unknown, unknown, never>>>>

interface Entry<State> extends ActorInstance<State> {
  /** What parts are made under: it ends after the actor's messages have, however late a part was made. */
  readonly scope: Scope.Scope
  parts: Map<object, Effect.Effect<unknown>> | undefined
}

/** `services` is what ownerships and parts are made with. */
export const make = <State, R>(services: Context.Context<R>): ActorInstances<State, R> => {
  const entries = new Map<string, Entry<State>>()

  const entry = Effect.withFiberSucceed(
    (fiber) => entries.get(Context.getUnsafe(fiber.context, Entity.CurrentAddress).entityId) as Entry<State>,
  )

  const of = <A>(resident: Entry<State>, part: Part<ActorInstance<State>, A, R | Scope.Scope>): Effect.Effect<A> => {
    const known = resident.parts?.get(part)
    if (known !== undefined) return known as Effect.Effect<A>
    const made = Effect.suspend(() =>
      Effect.provideContext(part.make(resident), Context.add(services, Scope.Scope, resident.scope)),
    )
    return Effect.flatMap(Effect.cached(Effect.uninterruptible(made)), (once) => {
      const parts = (resident.parts ??= new Map())
      // Whoever asked meanwhile has made it.
      if (!parts.has(part)) parts.set(part, once)
      return parts.get(part) as Effect.Effect<A>
    })
  }

  return {
    enter: Effect.fnUntraced(function* (own) {
      const address = yield* Entity.CurrentAddress
      const id: string = address.entityId
      // The handlers are not served yet: what was registered with the actor's scope first ends last.
      const scope = yield* Scope.fork(yield* Effect.scope)
      const ownership = yield* Effect.provideContext(own(id), services)
      const made: Entry<State> = { id, ownership, scope, parts: undefined }
      yield* Effect.acquireRelease(
        Effect.sync(() => entries.set(id, made)),
        () => Effect.sync(() => entries.get(id) === made && entries.delete(id)),
      )
      return made
    }),
    serving: <H extends Handlers>(handlers: H) => {
      const served = Object.entries(handlers).map(([tag, handler]) => [
        tag,
        (request: { readonly address: EntityAddress.EntityAddress }) =>
          Rpc.wrapMap(handler(request as never), Effect.provideService(Entity.CurrentAddress, request.address)),
      ])
      return Object.fromEntries(served) as H
    },
    present: entry,
    ownership: {
      state: Effect.flatMap(entry, ({ ownership }) => ownership.state),
      settled: Effect.flatMap(entry, ({ ownership }) => ownership.settled),
      write: (by, run) => Effect.flatMap(entry, ({ ownership }) => ownership.write(by, run)),
      change: (by, run) => Effect.flatMap(entry, ({ ownership }) => ownership.change(by, run)),
    },
    part: (wanted) => Effect.flatMap(entry, (resident) => of(resident, wanted)),
    partOf: (resident, wanted) => of(resident as Entry<State>, wanted),
  }
}
