/** CTE `made`: creates folders with a UID validity each; existing folders are skipped. */
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import type { Statement } from "effect/sql"
import type { Write } from "../../actor/Write.ts"

interface NewFolder {
  readonly name: string
  readonly use: FolderUse | null
}

/**
 * Used within a `commit`; returns `name`. Unused UID validities are never assigned again. An empty text stands for no
 * special use, since the driver cannot infer the type of an all-null array.
 */
export const made = ({ sql, identity, at }: Write, folders: ReadonlyArray<NewFolder>): Statement.Fragment => sql`
  box as (
    update mailbox set uid_validity = uid_validity + ${folders.length}::int
    where identity_id = ${identity.id}::uuid and exists (select from fence) returning uid_validity
  ),
  made as (
    insert into folder (id, identity_id, name, use, uid_validity, created_at)
    select gen_random_uuid(), ${identity.id}::uuid, one.name, nullif(one.use, ''), box.uid_validity - one.n::int + 1, ${at}::timestamptz
    from box cross join unnest(${folders.map(({ name }) => name)}::text[], ${folders.map(({ use }) => use ?? "")}::text[])
      with ordinality as one (name, use, n)
    on conflict do nothing
    returning name
  )`
