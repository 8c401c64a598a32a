/**
 * Builds the handlers of the Identity actor's messages. A handler is a writer together with the condition that the
 * Identity must meet. Each capability returns a record of handlers, and the actor merges the records.
 */
import {
  type Initiator,
  initiatorHeader,
  commandHeader,
  decodeBy,
  noteHeader,
  system,
} from "@svc/domain/account/Initiator"
import type { Moved } from "@svc/domain/actor/Protocol"
import { Uuid } from "@svc/domain/IdSchemas"
import { notReady } from "@svc/domain/identity/NotReady"
import { type IdentityNotReady, NotFound, type Unavailable } from "@svc/domain/problems/Problem"
import type { IdentityStatus } from "@svc/domain/IdentityRef"
import { Effect, Exit, Schema, type Scope } from "effect"
import { Rpc } from "effect/rpc"
import type { SqlError } from "effect/sql"
import * as Batcher from "../store/Batcher.ts"
import type { Sql } from "../store/Database.ts"
import type { Ownership } from "./Ownership.ts"
import type { AuditNote, FenceLost, OwnIdentity, Write } from "./Write.ts"

/** A message with its headers, as a handler receives it. */
export interface Request<Payload> {
  readonly payload: Payload
  readonly headers: Readonly<Record<string, string>>
}

/** The Org that the caller acts for. */
interface Tenant {
  readonly org_id: string
}

/** The part of the Identity that handlers read. */
export interface ActorIdentity extends OwnIdentity {
  readonly status: IdentityStatus
}

/** One of several messages that a single write carries out. */
export interface ReceivedCommand<P> {
  readonly payload: P
  /** The initiator of the message. */
  readonly by: Initiator
  /** The id of the command; undefined if the message does not come from a request. */
  readonly commandId: string | undefined
  /** The audit record of the command. */
  readonly note: AuditNote | undefined
}

type Refused<E> = Exclude<E, SqlError.SqlError | FenceLost> | Moved | Unavailable
type Writer<P, A, E> = (write: Write, payload: P) => Effect.Effect<A, E>
type Handler<P, A, E> = (request: Request<P>) => Effect.Effect<A, E>

export interface ActorHandlers {
  /** Handles a write to a ready Identity of the caller's Org. */
  readonly onReady: <P extends Tenant, A, E>(
    writer: Writer<P, A, E>,
  ) => Handler<P, A, Refused<E> | NotFound | IdentityNotReady>
  /**
   * Handles writes like {@link onReady}, but combines the messages that wait at the same time into one write, in order
   * of arrival. Each message gets its own reply. Two messages of the same command are never in one write.
   */
  readonly onReadyTogether: <P extends Tenant, A, E, R>(
    writer: Writer<ReadonlyArray<ReceivedCommand<P>>, ReadonlyArray<Exit.Exit<A, R>>, E>,
    limits: Pick<Batcher.BatchLimits, "most">,
  ) => (request: Request<P>) => Rpc.Wrapper<Effect.Effect<A, Refused<E> | R | NotFound | IdentityNotReady>>
  /** Handles a write to an Identity of the caller's Org in any status. */
  readonly onPresent: <P extends Tenant, A, E>(writer: Writer<P, A, E>) => Handler<P, A, Refused<E> | NotFound>
  /** Handles a write from outside, which names no Org. `refuse` replies if the Identity is not ready. */
  readonly fromOutside: <P, A, E, R>(
    writer: Writer<P, A, E>,
    refuse: (identity: ActorIdentity | undefined) => Effect.Effect<A, R>,
  ) => Handler<P, A, Refused<E> | R>
  /**
   * Handles writes from outside and combines the messages that wait at the same time, in order of arrival. Each message
   * gets its own reply. These writes block neither the actor's other messages nor one another.
   */
  readonly fromOutsideTogether: <P, A, E, R>(
    writer: Writer<ReadonlyArray<P>, ReadonlyArray<Exit.Exit<A, R>>, E>,
    refuse: (identity: ActorIdentity | undefined) => Effect.Effect<A, R>,
    limits: Omit<Batcher.BatchLimits<P>, "atOnce">,
  ) => (request: Request<P>) => Rpc.Wrapper<Effect.Effect<A, Refused<E> | R>>
}

/** Returns a part of the actor whose handler runs (`ActorInstances`). */
type PartOf = <A>(part: { readonly make: (_: unknown) => Effect.Effect<A, never, Scope.Scope> }) => Effect.Effect<A>

/** Adds the initiator and the request id to a handler's log entries. */
const annotated = (by: Initiator) =>
  Effect.annotateLogs({ request_id: by.requestId, caller: by.kind, credential_id: by.credentialId })

const notMine = () => new NotFound({ detail: "The Identity does not exist." })

/** Returns the Identity, or fails with `NotFound` if it does not exist or belongs to another Org. */
export const requireOwner = <S extends ActorIdentity>(
  identity: S | undefined,
  { org_id }: Tenant,
): Effect.Effect<S, NotFound> =>
  identity !== undefined && identity.orgId === org_id ? Effect.succeed(identity) : Effect.fail(notMine())

const ready = <S extends ActorIdentity>(identity: S): Effect.Effect<S, IdentityNotReady> =>
  identity.status === "ready" ? Effect.succeed(identity) : Effect.fail(notReady(identity.status))

export const byOf = ({ headers }: Pick<Request<unknown>, "headers">): Initiator => decodeBy(headers[initiatorHeader])

const isUuid = Schema.is(Uuid)
const commandOf = ({ headers }: Pick<Request<unknown>, "headers">): string | undefined => {
  const command = headers[commandHeader]
  return command !== undefined && isUuid(command) ? command : undefined
}

/** Returns the audit record that the message carries. */
export const noteOf = ({ headers }: Pick<Request<unknown>, "headers">): AuditNote | undefined => {
  const text = headers[noteHeader]
  return text === undefined ? undefined : { text, taken: false }
}

const receivedOf = <P>(request: Request<P>): ReceivedCommand<P> => ({
  payload: request.payload,
  by: byOf(request),
  commandId: commandOf(request),
  note: noteOf(request),
})

/**
 * Carries out a command once. A repeated message (the process crashed between commit and reply, or the request was
 * repeated with its `Idempotency-Key`) gets the result of the first. For writes that are neither idempotent by nature
 * nor named by the id of what they create.
 */
export const once = <P, E>(message: string, writer: Writer<P, void, E>): Writer<P, void, E | SqlError.SqlError> =>
  onceElse(message, writer, () => Effect.void)

/** Carries out a command with a result once; `again` reads the result for a repeated message. */
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

/**
 * Makes the handler builders. `ownership` and `part` refer to the actor whose handler runs. The success of a message
 * means that its audit record is stored: by the statement of the change, or by `record` if no statement took it, as of a
 * command that changed nothing.
 */
export const make = <S extends ActorIdentity>(
  ownership: Ownership<S | undefined>,
  part: PartOf,
  record: (sql: Sql, notes: ReadonlyArray<AuditNote>) => Effect.Effect<unknown, SqlError.SqlError>,
): ActorHandlers => {
  const recordRest = (sql: Sql, notes: ReadonlyArray<AuditNote | undefined>) => {
    const rest = notes.filter((note) => note !== undefined).filter(({ taken }) => !taken)
    return rest.length === 0 ? Effect.void : record(sql, rest)
  }
  /**
   * Reads the state after pending changes if the Identity is not ready in memory: the caller may already have read in
   * the store that it is ready.
   */
  const currentIdentity = Effect.flatMap(ownership.state, (identity) =>
    identity?.status === "provisioning" ? ownership.settled : Effect.succeed(identity),
  )
  const write = <P, A, E>(identity: OwnIdentity, request: Request<P>, writer: Writer<P, A, E>) => {
    const by = byOf(request)
    const note = noteOf(request)
    return annotated(by)(
      ownership.write(by, (fenced) =>
        Effect.tap(writer({ ...fenced, identity, commandId: commandOf(request), note }, request.payload), () =>
          recordRest(fenced.sql, [note]),
        ),
      ),
    )
  }
  return {
    onReady: (writer) => (request) =>
      currentIdentity.pipe(
        Effect.flatMap((identity) => requireOwner(identity, request.payload)),
        Effect.flatMap(ready),
        Effect.flatMap((identity) => write(identity, request, writer)),
      ),
    onReadyTogether: <P extends Tenant, A, E, R>(
      writer: Writer<ReadonlyArray<ReceivedCommand<P>>, ReadonlyArray<Exit.Exit<A, R>>, E>,
      { most }: Pick<Batcher.BatchLimits, "most">,
    ) => {
      type Answer = Exit.Exit<A, R | NotFound | IdentityNotReady>
      const run = (all: ReadonlyArray<ReceivedCommand<P>>) =>
        Effect.flatMap(currentIdentity, (identity): Effect.Effect<ReadonlyArray<Answer>, Refused<E>> => {
          const owned = all.filter(({ payload }) => identity?.orgId === payload.org_id)
          const answered = (answers: ReadonlyArray<Answer>) => {
            if (owned.length === all.length) return answers
            const of = new Map(owned.map((one, index) => [one, answers[index]!]))
            return all.map((one): Answer => of.get(one) ?? Exit.fail(notMine()))
          }
          return identity?.status === "ready"
            ? Effect.map(
                ownership.write(system, (fenced) =>
                  Effect.tap(writer({ ...fenced, identity }, owned), (exits) =>
                    recordRest(
                      fenced.sql,
                      owned.map(({ note }, n) => (Exit.isSuccess(exits[n]!) ? note : undefined)),
                    ),
                  ),
                ),
                answered,
              )
            : Effect.succeed(answered(owned.map(() => Exit.fail(identity ? notReady(identity.status) : notMine()))))
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
          Effect.flatMap(part(batch), (enqueue) => Effect.flatMap(enqueue(receivedOf(request)), (answer) => answer)),
        )
    },
    onPresent: (writer) => (request) =>
      currentIdentity.pipe(
        Effect.flatMap((identity) => requireOwner(identity, request.payload)),
        Effect.flatMap((identity) => write(identity, request, writer)),
      ),
    fromOutside:
      <P, A, E, R>(writer: Writer<P, A, E>, refuse: (identity: ActorIdentity | undefined) => Effect.Effect<A, R>) =>
      (request: Request<P>) =>
        Effect.flatMap(currentIdentity, (identity): Effect.Effect<A, Refused<E> | R> =>
          identity?.status === "ready" ? write(identity, request, writer) : refuse(identity),
        ),
    fromOutsideTogether: <P, A, E, R>(
      writer: Writer<ReadonlyArray<P>, ReadonlyArray<Exit.Exit<A, R>>, E>,
      refuse: (identity: ActorIdentity | undefined) => Effect.Effect<A, R>,
      limits: Omit<Batcher.BatchLimits<P>, "atOnce">,
    ) => {
      const batch = {
        make: () =>
          Batcher.make(
            (payloads: ReadonlyArray<P>) =>
              Effect.flatMap(currentIdentity, (identity): Effect.Effect<ReadonlyArray<Exit.Exit<A, R>>, Refused<E>> =>
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
