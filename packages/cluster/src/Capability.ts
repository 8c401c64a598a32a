/**
 * The interface of a capability of the product. Each capability's folder exports one record, which
 * `capabilities/Capabilities.ts` lists. The actors' handlers and work, exports and erasure are derived from that list. An
 * incomplete record does not compile, and `test/store/owners.test.ts` fails for a table that no record owns.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { Effect, type Layer } from "effect"
import type { Statement } from "effect/sql"
import type { ActorHandlers } from "./actor/ActorHandlers.ts"
import type { Sql } from "./store/Database.ts"
import type { Source } from "./work/Source.ts"

export interface Capability {
  readonly name: string
  /** Creates the handlers of its messages to the Identity's actor; {@link noHandlers} for a capability without messages. */
  readonly handlers: (actor: HandlerContext) => Effect.Effect<object, never, unknown>
  /** Work sources of the Identity's and the Org's actor. */
  readonly work: {
    readonly identity: ReadonlyArray<Source<never, unknown, never>>
    readonly org: ReadonlyArray<Source<never, unknown, never>>
  }
  /** Services that read (and write without an actor), shared by several roles. */
  readonly queries: ReadonlyArray<Layer.Any>
  /** Members that it adds to an export. */
  readonly exports: ReadonlyArray<Exported<unknown>>
  /** Every table that it owns. Batches of an erasure run in this order. */
  readonly tables: Readonly<Record<string, Table>>
}

/** The parameters of a capability's handlers. Other services come from the context. */
export interface HandlerContext {
  readonly handling: ActorHandlers
  readonly limits: IdentityLimits
}

/** Limits of the deployment. */
export interface IdentityLimits {
  /** Number of Identities that an Org may ever create. */
  readonly identityQuota: number
  /** Size of a Mailbox in bytes. */
  readonly mailboxBytes: number
  /** Number of messages that an Identity may send in any hour. */
  readonly mailHourly: number
  /** The range of TCP ports for Tunnels. */
  readonly tunnelPorts: { readonly first: number; readonly last: number }
}

export const noHandlers = () => Effect.succeed({})

export interface Table {
  readonly erased: Erasure
  /** The export member that contains the rows, or the reason for leaving them out. */
  readonly exported: string | { readonly not: string }
}

/** How the rows of a table are deleted with their account or Identity. */
type Erasure =
  /** A cascading foreign key deletes the rows. */
  | "cascade"
  /** Batches delete the rows before the Identity, because there may be very many. */
  | { readonly inBatches: RemoveBatch }
  /** The batches of another table delete the rows. */
  | { readonly together: string }
  /** A statement in a file below `packages/cluster/src` deletes the rows. */
  | { readonly by: string; readonly statement: string }
  /** The rows stay, for this reason. */
  | { readonly kept: string }

/** Deletes at most `limit` rows of an Identity and returns their number (`n`). */
export type RemoveBatch = (sql: Sql, identityId: string, limit: number) => Statement.Statement<{ n: number }>

/** The members of an export: `append` takes bytes, `lines` takes values for a JSON Lines file. */
export interface ExportWriter {
  readonly append: (member: string, bytes: Uint8Array) => Effect.Effect<void, unknown>
  readonly lines: (member: string, values: ReadonlyArray<unknown>) => Effect.Effect<void, unknown>
}

export interface ExportedIdentity {
  readonly org: string
  readonly id: IdentityId
  readonly handle: string
}

/** An export of the whole Org (`canonical` is null) or of one Identity. */
export interface ExportScope {
  readonly org: string
  readonly canonical: string | null
  readonly found: ReadonlyArray<object>
}

export interface Exported<R> {
  /** Names of the members; `*` stands for a Handle. */
  readonly members: ReadonlyArray<string>
  /** Runs once per export. */
  readonly once?: (scope: ExportScope, pieces: ExportWriter) => Effect.Effect<void, unknown, R>
  /** Runs for each exported Identity. */
  readonly ofIdentity?: (identity: ExportedIdentity, pieces: ExportWriter) => Effect.Effect<void, unknown, R>
}

export type NeedsOfExport<E> = E extends Exported<infer R> ? R : never

/** Exports rows of each Identity, with its Handle, as one JSON Lines member. */
export const exportedRows = <E, R>(
  member: string,
  rows: (identity: ExportedIdentity) => Effect.Effect<ReadonlyArray<object>, E, R>,
): Exported<R> => ({
  members: [member],
  ofIdentity: (identity, pieces) =>
    Effect.flatMap(rows(identity), (found) =>
      pieces.lines(
        member,
        found.map((row) => ({ identity: identity.handle, ...row })),
      ),
    ),
})

/** Declares a table whose rows are deleted by a cascading foreign key. */
export const cascades = (exported: Table["exported"]): Table => ({ erased: "cascade", exported })

/** Declares a table whose rows stay when their account is deleted. */
export const kept = (reason: string): Table => ({ erased: { kept: reason }, exported: { not: reason } })

/** Reasons for which no export has the rows of a table. */
export const derived = { not: "derived from exported data" }
export const credential = { not: "a credential, or a part of one" }
export const workState = { not: "state of temporary work" }

/** The reason to keep short-lived rows. */
export const shortLived = kept("names no person, and is deleted by age")
