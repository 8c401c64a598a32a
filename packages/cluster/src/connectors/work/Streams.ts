/**
 * Streams as a work source of the actor. If a platform offers streams, one is open while the Connector works, and its
 * messages request polls. Only the mark of the polls decides what is reported, so a lost, false or repeated message
 * costs at most a poll. A lost stream is reopened with increasing delays while polls continue.
 */
import { Clock, Effect, type Fiber, FiberSet, Latch, Random } from "effect"
import type { OwnIdentity } from "../../actor/Write.ts"
import { Timing } from "../../Timing.ts"
import type { Running } from "../../work/Source.ts"
import { type Connection, type ConnectorState, isPaused } from "../ConnectorState.ts"
import type { Parts } from "./DueWork.ts"

export interface Streams extends Running<ConnectorState> {
  /** Closes the stream of a Connector that was paused, stopped, reconnected or removed. */
  readonly committed: (state: ConnectorState) => void
}

/** Returns the connection that should have a stream. */
const wantedBy = (state: ConnectorState): Connection | undefined =>
  state.connection?.status === "connected" && !isPaused(state) ? state.connection : undefined

export const make = Effect.fnUntraced(function* ({ calls, pollTrigger }: Parts) {
  const { platform } = calls
  const fibers = yield* FiberSet.make<void, unknown>()
  let open: { readonly connection: string; fiber: Fiber.Fiber<void, unknown> | undefined } | undefined
  let lost = 0
  let notBefore = 0

  const close = () => {
    open?.fiber?.interruptUnsafe()
    open = undefined
    lost = 0
    notBefore = 0
  }

  /** Schedules the next attempt after a stream ended. */
  const ended = Effect.fnUntraced(function* (openedAt: number | undefined, failure: unknown) {
    const now = yield* Clock.currentTimeMillis
    lost = openedAt !== undefined && now - openedAt >= Timing.streamKeptMillis ? 0 : lost + 1
    const waits = Timing.streamAgainMillis
    const isAbsent = failure instanceof Object && "_tag" in failure && failure._tag === "Unsupported"
    const wait = isAbsent ? Timing.streamAbsentMillis : waits[Math.min(lost, waits.length - 1)]!
    notBefore = now + wait * (0.8 + 0.4 * (yield* Random.next))
  })

  const listen = (
    stream: NonNullable<typeof platform.stream>,
    identity: OwnIdentity,
    connection: Connection,
    changed: Effect.Effect<void>,
  ) =>
    Effect.gen(function* () {
      const activity = yield* Latch.make()
      const handle = { connection: connection.id, fiber: undefined as Fiber.Fiber<void, unknown> | undefined }
      let openedAt: number | undefined
      const requestPoll = Effect.andThen(pollTrigger.request(calls, connection.id), changed)
      const polling = activity.await.pipe(
        Effect.andThen(
          Effect.gen(function* () {
            activity.closeUnsafe()
            openedAt ??= yield* Clock.currentTimeMillis
            yield* requestPoll
          }),
        ),
        Effect.forever,
      )
      open = handle
      const session = calls.session(identity, connection)
      handle.fiber = yield* Effect.raceFirst(
        stream(session, () => activity.openUnsafe()),
        polling,
      ).pipe(
        Effect.catch((failure) =>
          Effect.gen(function* () {
            yield* ended(openedAt, failure)
            // A poll covers what arrived since the stream was lost.
            if (openedAt !== undefined) yield* Effect.ignore(requestPoll)
          }),
        ),
        Effect.catchDefect((defect) =>
          Effect.andThen(Effect.logError("A stream failed with a defect", defect), ended(undefined, defect)),
        ),
        Effect.ensuring(
          Effect.suspend(() => {
            if (open === handle) open = undefined
            return changed
          }),
        ),
        FiberSet.run(fibers),
      )
      // `close` ran before the fiber was known, and could not interrupt it.
      if (open !== handle) handle.fiber.interruptUnsafe()
    })

  return {
    dispatch: Effect.fnUntraced(function* (state, changed) {
      const stream = platform.stream
      const connection = wantedBy(state)
      if (stream === undefined || connection === undefined || state.identity === undefined) return false
      if (open !== undefined || notBefore > (yield* Clock.currentTimeMillis)) return false
      yield* listen(stream, state.identity, connection, changed)
      return true
    }),
    nextDue: (state) =>
      Effect.sync(() =>
        platform.stream === undefined || wantedBy(state) === undefined || open !== undefined
          ? null
          : new Date(notBefore),
      ),
    isBusy: () => open !== undefined,
    settle: Effect.sync(close),
    committed: (state) => {
      if (open !== undefined && wantedBy(state)?.id !== open.connection) close()
    },
  } satisfies Streams
})
