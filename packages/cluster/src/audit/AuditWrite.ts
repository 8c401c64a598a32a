/**
 * Audit records to write, and the statements that write them. Records are one JSON parameter, and can be a common table
 * expression in the statement of the change ({@link auditWrite}): then a change is never without its record, and needs
 * no second commit.
 */
import { createHash } from "node:crypto"
import type { AuditActor, AuditClass, AuditOutcome, AuditSource, AuditTarget } from "@svc/domain/audit/AuditRecord"
import { makeUuidV7, uuidMillis } from "@svc/domain/Ids"
import { Clock, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { AuditNote } from "../actor/Write.ts"
import type { Sql } from "../store/Database.ts"
import * as Proof from "./Proof.ts"

/** An operation as authorization knows it. */
export interface Act {
  readonly org: string
  readonly class: AuditClass
  /** `vault.value`: the group and the name of the endpoint. */
  readonly action: string
  readonly actor: AuditActor
  /** The Identity that the operation concerns. */
  readonly identity: { readonly id: string; readonly handle: string } | null
  readonly target: AuditTarget | null
  readonly outcome: AuditOutcome
  /** The problem code if the operation was rejected or failed. */
  readonly code: string | null
  /** The scope that the operation requires. */
  readonly scope: string | null
  readonly source: AuditSource
  readonly requestId: string | null
  /**
   * The command of a request with an `Idempotency-Key`. A repeated request with the same outcome has the same record.
   */
  readonly command?: string | undefined
}

/** An operation with its id and time. */
interface Identified extends Act {
  readonly id: string
  readonly at: Date
  readonly count: number
}

/** An operation to write; writing it again has no effect. */
export interface AuditWrite extends Identified {
  /** The row of the record, with the proof that the service wrote it. */
  readonly row: ReturnType<typeof rowOf> & { readonly proof: string }
}

/** Returns the id of the record of a command's outcome: a version 7 UUID with the time of the command's id. */
const idOf = (command: string, { class: of, action, outcome, code }: Act): string => {
  const digest = createHash("sha256")
    .update(JSON.stringify([command, of, action, outcome, code]))
    .digest("hex")
  const variant = "89ab"[parseInt(digest[3]!, 16) & 3]
  return `${command.slice(0, 13)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}`
}

/** Adds time, id and proof to an operation. */
export const make = (key: Proof.ProofKey, act: Act, count = 1): Effect.Effect<AuditWrite> =>
  Effect.zipWith(makeUuidV7, Clock.currentTimeMillis, (fresh, now) => {
    const { command } = act
    const [id, at] = command === undefined ? [fresh, now] : [idOf(command, act), uuidMillis(command)]
    const note = { ...act, id, at: new Date(at), count }
    const row = rowOf(note)
    return { ...note, row: { ...row, proof: Proof.of(key, row) } }
  })

/** Limits text from callers, which may be long or contain characters that the database rejects. */
const atMost = 300
const plain = (text: string | null): string | null =>
  text === null
    ? null
    : text
        .slice(0, atMost)
        // oxlint-disable-next-line no-control-regex -- these are what goes
        .replace(/[\u0000-\u001f\u007f-\u009f]/g, "")
        .toWellFormed()

/** Returns the row of a record. */
export const rowOf = (note: Identified) => ({
  org_id: note.org,
  id: note.id,
  at: note.at.toISOString(),
  class: note.class,
  action: note.action,
  actor_kind: note.actor.kind,
  actor_id: note.actor.id,
  actor_name: plain(note.actor.name),
  actor_client: plain(note.actor.client),
  identity_id: note.identity?.id ?? null,
  handle: note.identity?.handle ?? null,
  target_type: note.target?.type ?? null,
  target_id: plain(note.target?.id ?? null),
  target_name: plain(note.target?.name ?? null),
  outcome: note.outcome,
  code: note.code,
  scope: note.scope,
  address: note.source.address,
  via: note.source.via,
  tool: note.source.tool,
  user_agent: plain(note.source.user_agent),
  request_id: note.requestId,
  count: note.count,
})

const columns = `org_id, id, at, class, action, actor_kind, actor_id, actor_name, actor_client, identity_id, handle, target_type,
  target_id, target_name, outcome, code, scope, address, via, tool, user_agent, request_id, count, proof`
const typed = `org_id uuid, id uuid, at timestamptz, class text, action text, actor_kind text, actor_id text, actor_name text,
  actor_client text, identity_id uuid, handle text, target_type text, target_id text, target_name text, outcome text, code text,
  scope text, address text, via text, tool text, user_agent text, request_id text, count integer, proof text`

/** Returns the record in the form that statements and messages to actors take (`noteHeader`). */
export const toNote = (write: AuditWrite): AuditNote => ({ text: textOf([write]), taken: false })

/** Returns records as the single parameter of a statement. */
const textOf = (notes: ReadonlyArray<AuditWrite>): string => JSON.stringify(notes.map(({ row }) => row))

/** Joins the records of several operations in one statement. */
const gathered = (texts: ReadonlyArray<string>): string => `[${texts.map((text) => text.slice(1, -1)).join(",")}]`

const insertText = (sql: Sql, text: string, where: Statement.Fragment): Statement.Fragment => sql`
  insert into audit (${sql.literal(columns)})
  select ${sql.literal(columns)} from json_to_recordset(${text}::json) as n (${sql.literal(typed)})
  where exists (select from org where org.id = n.org_id) ${where}
  on conflict (id, at) do nothing`

/** Returns the statement that inserts records. Existing ones stay unchanged, and a deleted account has no log. */
export const insert = (sql: Sql, notes: ReadonlyArray<AuditWrite>): Statement.Fragment =>
  insertText(sql, textOf(notes), sql``)

/** Inserts the records of commands that no other statement stores. */
export const insertNotes = (sql: Sql, notes: ReadonlyArray<AuditNote>): Effect.Effect<void, SqlError.SqlError> =>
  Effect.asVoid(sql`${insertText(sql, gathered(notes.map(({ text }) => text)), sql``)}`)

/**
 * CTE `on_record`: inserts the record in the statement that it describes, if `gate` (a CTE of the same statement) has a
 * row. Whatever is shown must be selected from it: `select … from gate, on_record`.
 */
export const auditWrite = (sql: Sql, note: AuditNote, gate: string): Statement.Fragment => {
  note.taken = true
  return sql`on_record as (${insertText(sql, note.text, sql`and exists (select from ${sql(gate)})`)} returning 1 as kept)`
}

/** Returns {@link auditWrite} after other CTEs, or nothing without a record. */
export const auditWriteWith = (sql: Sql, note: AuditNote | undefined, gate: string): Statement.Fragment =>
  note === undefined ? sql`` : sql`, ${auditWrite(sql, note, gate)}`

/** Returns the records of several operations, and the position of each operation's record from 1; 0 without one. */
export const notesOf = (operations: ReadonlyArray<{ readonly note?: AuditNote | undefined }>) => {
  const notes = operations.flatMap(({ note }) => (note === undefined ? [] : [note]))
  let n = 0
  return { notes, positions: operations.map(({ note }) => (note === undefined ? 0 : ++n)) }
}

/**
 * Returns {@link auditWrite} for several operations; each is recorded if `gate` has a row whose `note` is its position,
 * from 1.
 */
export const auditWrites = (sql: Sql, notes: ReadonlyArray<AuditNote>, gate: string): Statement.Fragment => {
  if (notes.length === 0) return sql``
  for (const note of notes) note.taken = true
  return sql`, on_record as (
        insert into audit (${sql.literal(columns)})
        select ${sql.literal(columns)}
        from rows from (json_to_recordset(${gathered(notes.map(({ text }) => text))}::json) as (${sql.literal(typed)})) with ordinality as n
        where exists (select from org where id = n.org_id) and n.ordinality in (select note from ${sql(gate)})
        on conflict (id, at) do nothing)`
}
