/**
 * The actors of one kind that are in memory. All of them share one record of handlers, which finds the actor by the
 * address of the message; a record per actor took most of an idle actor's memory. Parts that an actor needs rarely are
 * made on first use.
 */
import { Context, Effect, Scope } from "effect"
import { Entity, type EntityAddress } from "effect/cluster"
import { Rpc } from "effect/rpc"
import type { Ownership } from "./Ownership.ts"

/** A part of an actor: made on first use, under the actor's scope, and kept as long as the actor. */
interface Part<Resident, A, R> {
  readonly make: (resident: Resident) => Effect.Effect<A, never, R>
}

/** An actor in memory. */
export interface ActorInstance<State> {
  readonly id: string
  readonly ownership: Ownership<State>
}

interface ActorInstances<State, R> {
  /** Registers the actor whose handlers are being built. */
  readonly enter: (
    own: (id: string) => Effect.Effect<Ownership<State>, never, R>,
  ) => Effect.Effect<ActorInstance<State>, never, Entity.CurrentAddress | Scope.Scope>
  /**
   * Wraps the handlers so that each runs under the address of its message. The context that the library provides is not
   * enough: if one actor calls another in the same process, it also contains the caller's address, which takes
   * precedence.
   */
  readonly serving: <H extends Handlers>(handlers: H) => H
  /** The actor whose handler runs. */
  readonly present: Effect.Effect<ActorInstance<State>>
  /** The ownership of the actor whose handler runs. */
  readonly ownership: Ownership<State>
  /** Returns a part of the actor whose handler runs. */
  readonly part: <A>(part: Part<ActorInstance<State>, A, R | Scope.Scope>) => Effect.Effect<A>
  /** Returns a part of the given actor, outside its handlers. */
  readonly partOf: <A>(
    resident: ActorInstance<State>,
    part: Part<ActorInstance<State>, A, R | Scope.Scope>,
  ) => Effect.Effect<A>
}

/** Handlers in the form that the library expects. */
type Handlers = Readonly<Record<string, (request: never) => Rpc.WrapperOr<Effect.Effect<unknown, unknown, never>>>>

interface Entry<State> extends ActorInstance<State> {
  /** The scope of the parts. It closes after the actor's last message, however late a part was made. */
  readonly scope: Scope.Scope
  parts: Map<object, Effect.Effect<unknown>> | undefined
}

/** Makes the registry; `services` is the context in which ownerships and parts are made. */
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
      // A concurrent caller may have made the part already.
      if (!parts.has(part)) parts.set(part, once)
      return parts.get(part) as Effect.Effect<A>
    })
  }

  return {
    enter: Effect.fnUntraced(function* (own) {
      const address = yield* Entity.CurrentAddress
      const id: string = address.entityId
      // No handler runs yet, so this finalizer is registered first and runs last.
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
