/**
 * How a capability serves its messages to the Identity actor: it answers a record of handlers made with these, each of
 * which is a writer and what the Identity must be for it. The actor spreads the records of all capabilities.
 */
import {
  type Initiator,
  initiatorHeader,
  commandHeader,
  decodeBy,
  noteHeader,
  system,
} from "@svc/domain/account/Initiator"
import type { Moved } from "@svc/domain/actor/Moved"
import { Uuid } from "@svc/domain/IdSchemas"
import { IdentityNotReady, NotFound, type Unavailable } from "@svc/domain/problems/Problem"
import type { IdentityStatus } from "@svc/domain/IdentityRef"
import { Effect, Exit, Schema, type Scope } from "effect"
import { Rpc } from "effect/rpc"
import type { SqlError } from "effect/sql"
import * as Batcher from "../store/Batcher.ts"
import type { Ownership } from "./Ownership.ts"
import type { FenceLost, OwnIdentity, Write } from "./Write.ts"

/** A message as its handler gets it. */
export interface Request<Payload> {
  readonly payload: Payload
  readonly headers: Readonly<Record<string, string>>
}

/** The Org on whose behalf an Identity is asked. */
interface Tenant {
  readonly org_id: string
}

/** What handlers need to know of the Identity. */
export interface Standing extends OwnIdentity {
  readonly status: IdentityStatus
}

/** A message of several that one write does. */
export interface ReceivedCommand<P> {
  readonly payload: P
  /** Who asked for it. */
  readonly by: Initiator
  /** The command that it is part of; undefined where it came from no request. */
  readonly commandId: string | undefined
  /** What the audit log is to say of it. */
  readonly note: string | undefined
}

type Refused<E> = Exclude<E, SqlError.SqlError | FenceLost> | Moved | Unavailable
type Writer<P, A, E> = (write: Write, payload: P) => Effect.Effect<A, E>
type Handler<P, A, E> = (request: Request<P>) => Effect.Effect<A, E>

export interface ActorHandlers {
  /** A write to an Identity of the asking Org that is ready. */
  readonly onReady: <P extends Tenant, A, E>(
    writer: Writer<P, A, E>,
  ) => Handler<P, A, Refused<E> | NotFound | IdentityNotReady>
  /**
   * {@link onReady} for writes of which those that wait at the same time become one, in the order in which they came. Each
   * gets an answer of its own; two of one command are never in the same.
   */
  readonly onReadyTogether: <P extends Tenant, A, E, R>(
    writer: Writer<ReadonlyArray<ReceivedCommand<P>>, ReadonlyArray<Exit.Exit<A, R>>, E>,
    limits: Pick<Batcher.BatchLimits, "most">,
  ) => (request: Request<P>) => Rpc.Wrapper<Effect.Effect<A, Refused<E> | R | NotFound | IdentityNotReady>>
  /** A write to an Identity of the asking Org, whatever its status. */
  readonly onPresent: <P extends Tenant, A, E>(writer: Writer<P, A, E>) => Handler<P, A, Refused<E> | NotFound>
  /** A write that comes from outside and names no Org; `refuse` answers where the Identity is not ready. */
  readonly fromOutside: <P, A, E, R>(
    writer: Writer<P, A, E>,
    refuse: (identity: Standing | undefined) => Effect.Effect<A, R>,
  ) => Handler<P, A, Refused<E> | R>
  /**
   * Writes from outside of which those that wait at the same time become one, in the order in which they came. Each gets
   * an answer of its own; they do not hold up the actor's other messages, nor one another.
   */
  readonly fromOutsideTogether: <P, A, E, R>(
    writer: Writer<ReadonlyArray<P>, ReadonlyArray<Exit.Exit<A, R>>, E>,
    refuse: (identity: Standing | undefined) => Effect.Effect<A, R>,
    limits: Omit<Batcher.BatchLimits<P>, "atOnce">,
  ) => (request: Request<P>) => Rpc.Wrapper<Effect.Effect<A, Refused<E> | R>>
}

/** Where handlers find what is made for each actor (`Residents`). */
export type PartOf = <A>(part: {
  readonly make: (_: unknown) => Effect.Effect<A, never, Scope.Scope>
}) => Effect.Effect<A>

/** The entries that a handler logs carry who asked, and in which request. */
const annotated = (by: Initiator) =>
  Effect.annotateLogs({ request_id: by.requestId, caller: by.kind, credential_id: by.credentialId })

const notMine = () => new NotFound({ detail: "There is no such Identity." })

/** The Identity, if it exists and belongs to the asking Org; of another Org it does not exist. */
export const mine = <S extends Standing>(identity: S | undefined, { org_id }: Tenant): Effect.Effect<S, NotFound> =>
  identity !== undefined && identity.orgId === org_id ? Effect.succeed(identity) : Effect.fail(notMine())

const notReady = ({ status }: Standing) =>
  new IdentityNotReady({
    detail: `The Identity is ${status}.`,
    agent_hint: status === "provisioning" ? "wait" : "stop",
  })

const ready = <S extends Standing>(identity: S): Effect.Effect<S, IdentityNotReady> =>
  identity.status === "ready" ? Effect.succeed(identity) : Effect.fail(notReady(identity))

export const byOf = ({ headers }: Pick<Request<unknown>, "headers">): Initiator => decodeBy(headers[initiatorHeader])

const isUuid = Schema.is(Uuid)
const commandOf = ({ headers }: Pick<Request<unknown>, "headers">): string | undefined => {
  const command = headers[commandHeader]
  return command !== undefined && isUuid(command) ? command : undefined
}

const askedOf = <P>(request: Request<P>): ReceivedCommand<P> => ({
  payload: request.payload,
  by: byOf(request),
  commandId: commandOf(request),
  note: request.headers[noteHeader],
})

/**
 * A writer that does a command once: when the message comes again (its process died between commit and reply, or the
 * request was made again with its `Idempotency-Key`), it answers what the first one did. For what is not idempotent by
 * nature, nor named by the id of what it makes.
 */
export const once = <P, E>(message: string, writer: Writer<P, void, E>): Writer<P, void, E | SqlError.SqlError> =>
  onceElse(message, writer, () => Effect.void)

/** {@link once} of a command with an answer, which `again` reads. */
export const onceElse =
  <P, A, E>(message: string, writer: Writer<P, A, E>, again: Writer<P, A, E>): Writer<P, A, E | SqlError.SqlError> =>
  (write, payload) => {
    const id = write.commandId
    if (id === undefined) return writer(write, payload)
    return Effect.flatMap(
      write.sql`select 1 from actor_command where id = ${id}::uuid and message = ${message}`,
      ([done]) =>
        done === undefined ? writer({ ...write, command: { id, message } }, payload) : again(write, payload),
    )
  }

/** `ownership` is that of the actor whose handler runs, and so is a `part`. */
export const make = <S extends Standing>(ownership: Ownership<S | undefined>, part: PartOf): ActorHandlers => {
  /** Who read in the store that the Identity is ready is not told that it is not, since its actor has yet to hear of it. */
  const standing = Effect.flatMap(ownership.state, (identity) =>
    identity?.status === "provisioning" ? ownership.settled : Effect.succeed(identity),
  )
  const write = <P, A, E>(identity: OwnIdentity, request: Request<P>, writer: Writer<P, A, E>) => {
    const by = byOf(request)
    return annotated(by)(
      ownership.write(by, (fenced) =>
        writer(
          { ...fenced, identity, commandId: commandOf(request), note: request.headers[noteHeader] },
          request.payload,
        ),
      ),
    )
  }
  return {
    onReady: (writer) => (request) =>
      standing.pipe(
        Effect.flatMap((identity) => mine(identity, request.payload)),
        Effect.flatMap(ready),
        Effect.flatMap((identity) => write(identity, request, writer)),
      ),
    onReadyTogether: <P extends Tenant, A, E, R>(
      writer: Writer<ReadonlyArray<ReceivedCommand<P>>, ReadonlyArray<Exit.Exit<A, R>>, E>,
      { most }: Pick<Batcher.BatchLimits, "most">,
    ) => {
      type Answer = Exit.Exit<A, R | NotFound | IdentityNotReady>
      const run = (all: ReadonlyArray<ReceivedCommand<P>>) =>
        Effect.flatMap(standing, (identity): Effect.Effect<ReadonlyArray<Answer>, Refused<E>> => {
          const asked = all.filter(({ payload }) => identity?.orgId === payload.org_id)
          const answered = (answers: ReadonlyArray<Answer>) => {
            if (asked.length === all.length) return answers
            const of = new Map(asked.map((one, index) => [one, answers[index]!]))
            return all.map((one): Answer => of.get(one) ?? Exit.fail(notMine()))
          }
          return identity?.status === "ready"
            ? Effect.map(
                ownership.write(system, (fenced) => writer({ ...fenced, identity }, asked)),
                answered,
              )
            : Effect.succeed(answered(asked.map(() => Exit.fail(identity ? notReady(identity) : notMine()))))
        })
      let unnamed = 0
      const batch = {
        make: () =>
          Batcher.make(run, {
            most,
            atOnce: 1,
            nextFirst: true,
            apart: ({ commandId }) => commandId ?? `${++unnamed}`,
          }),
      }
      return (request: Request<P>) =>
        Rpc.fork(
          Effect.flatMap(part(batch), (enqueue) => Effect.flatMap(enqueue(askedOf(request)), (answer) => answer)),
        )
    },
    onPresent: (writer) => (request) =>
      standing.pipe(
        Effect.flatMap((identity) => mine(identity, request.payload)),
        Effect.flatMap((identity) => write(identity, request, writer)),
      ),
    fromOutside:
      <P, A, E, R>(writer: Writer<P, A, E>, refuse: (identity: Standing | undefined) => Effect.Effect<A, R>) =>
      (request: Request<P>) =>
        Effect.flatMap(standing, (identity): Effect.Effect<A, Refused<E> | R> =>
          identity?.status === "ready" ? write(identity, request, writer) : refuse(identity),
        ),
    fromOutsideTogether: <P, A, E, R>(
      writer: Writer<ReadonlyArray<P>, ReadonlyArray<Exit.Exit<A, R>>, E>,
      refuse: (identity: Standing | undefined) => Effect.Effect<A, R>,
      limits: Omit<Batcher.BatchLimits<P>, "atOnce">,
    ) => {
      const batch = {
        make: () =>
          Batcher.make(
            (payloads: ReadonlyArray<P>) =>
              Effect.flatMap(standing, (identity): Effect.Effect<ReadonlyArray<Exit.Exit<A, R>>, Refused<E>> =>
                identity?.status === "ready"
                  ? ownership.write(system, (fenced) => writer({ ...fenced, identity }, payloads))
                  : Effect.map(Effect.exit(refuse(identity)), (refused) => payloads.map(() => refused)),
              ),
            { ...limits, atOnce: 1, nextFirst: true },
          ),
      }
      return (request: Request<P>) =>
        Rpc.fork(Effect.flatMap(part(batch), (enqueue) => Effect.flatMap(enqueue(request.payload), (answer) => answer)))
    },
  }
}
