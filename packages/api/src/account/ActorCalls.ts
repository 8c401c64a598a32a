/** Calls actors on behalf of an authorized request, and passes the caller, the request id and the command id along. */
import type { CallerOfRequest, SubjectInfo } from "@svc/domain/account/Authorization"
import type { Initiator } from "@svc/domain/account/Initiator"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import { Orgs } from "@svc/cluster/account/Orgs"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Timing } from "@svc/cluster/Timing"
import { Effect } from "effect"
import type { AuditNote } from "@svc/cluster/actor/Write"
import * as AuditNotes from "../audit/AuditNotes.ts"
import { commandId } from "../RequestContext.ts"

type ClientOf<Actors extends { readonly of: (id: string) => unknown }> = ReturnType<Actors["of"]>
type Options = ReturnType<typeof onBehalfOf>

/** Marks the entry as stored when the actor has replied, since the success of a message means that it is. */
export const storedByActor =
  <A, E, R>(call: (note: AuditNote | undefined) => Effect.Effect<A, E, R>) =>
  (note: AuditNote | undefined) =>
    Effect.tap(call(note), () => Effect.sync(() => void (note && (note.taken = true))))

/**
 * Calls the actor of an authorized Identity: `askIdentity(subject, (actor, by) => actor.Retry(payload, by))`. The actor stores
 * the audit record of the request, which says that the resource `made` is created.
 */
export const ofIdentity = Effect.map(
  Effect.all([Identities, AuditNotes.make]),
  ([identities, noting]) =>
    <A, E, R>(
      subject: SubjectInfo,
      message: (actor: ClientOf<Identities["Service"]>, by: Options) => Effect.Effect<A, E, R>,
      made?: string,
    ) =>
      Effect.flatMap(commandId, (command) =>
        noting(
          storedByActor((note) =>
            ask(message(identities.of(subject.canonical), onBehalfOf(subject.by, command, note))),
          ),
          made,
        ),
      ),
)

/** Calls the actor of the caller's Org. */
export const ofOrg = Effect.map(
  Effect.service(Orgs),
  (orgs) =>
    <A, E, R>(
      { org, by }: CallerOfRequest,
      message: (actor: ClientOf<Orgs["Service"]>, by: Options) => Effect.Effect<A, E, R>,
    ) =>
      ask(message(orgs.of(org.id), onBehalfOf(by))),
)

/**
 * Calls the Connector actor of an authorized Identity, or of the Identity that the caller's own authorization belongs to.
 */
export const ofConnector = Effect.map(
  Effect.service(Connectors),
  (connectors) =>
    <A, E, R>(
      { canonical, platform, by }: { readonly canonical: string; readonly platform: string; readonly by: Initiator },
      message: (actor: ReturnType<Connectors["Service"]["of"]>, by: Options) => Effect.Effect<A, E, R>,
    ) =>
      Effect.flatMap(commandId, (command) =>
        ask(message(connectors.of(canonical, platform), onBehalfOf(by, command)), Timing.askPlatform),
      ),
)
