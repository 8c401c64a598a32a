/** CTE `made`: folders of these names, each with a UID validity of its own, but for those that are there. */
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import type { Statement } from "effect/sql"
import type { Write } from "../../actor/Write.ts"

interface NewFolder {
  readonly name: string
  readonly use: FolderUse | null
}

/**
 * Within a `commit`; returns `name`. Validities that stay unused are not given again. No use is an empty text: an array of
 * nothing but nulls has no type for the driver.
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
