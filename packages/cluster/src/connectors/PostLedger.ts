/**
 * The ledger of commands that post. A command is recorded under the actor's fence before its call leaves, in the
 * statement that also grants the permit, and its post is stored afterwards. Repeating a completed command returns the
 * stored post. A command that started without completing may have posted, so its next call is marked as a retry.
 */
import { Post } from "@svc/domain/connectors/Post"
import { IdentityNotReady } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import { owner, permitted } from "../actor/Permit.ts"
import { commit, type Fenced, type OwnIdentity } from "../actor/Write.ts"

const decode = Schema.decodeUnknownEffect(Post)
const encode = Schema.encodeSync(Post)

type StartedPost =
  | { readonly _tag: "Done"; readonly post: Post }
  | { readonly _tag: "Started"; readonly again: boolean }

export const start = Effect.fnUntraced(function* (
  write: Fenced,
  identity: OwnIdentity,
  platform: string,
  command: string,
) {
  const { sql, at } = write
  const row = yield* commit<{ ready: boolean; fresh: boolean; known: unknown }>(
    write,
    sql`standing as (
      select i.id from fence, identity i where i.id = ${identity.id}::uuid and i.status = 'ready' for share of i
    ),
    begun as (
      insert into connector_sent (command_id, identity_id, platform, begun_at)
      select ${command}::uuid, id, ${platform}::text, ${at}::timestamptz from standing
      on conflict (command_id) do nothing returning command_id
    ),
    ${permitted(sql, owner(write))}`,
    {
      columns: sql`exists (select from standing) as ready, exists (select from begun) as fresh,
        (select post from connector_sent where command_id = ${command}::uuid and identity_id = ${identity.id}::uuid) as known`,
    },
  )
  if (!row.ready) return yield* new IdentityNotReady({ detail: "The Identity is not ready.", agent_hint: "stop" })
  const started: StartedPost =
    row.known == null
      ? { _tag: "Started", again: !row.fresh }
      : { _tag: "Done", post: yield* Effect.orDie(decode(row.known)) }
  return started
})

export const complete = (write: Fenced, command: string, post: Post) =>
  commit(
    write,
    write.sql`done as (
      update connector_sent set post = ${JSON.stringify(encode(post))}::jsonb
      where command_id = ${command}::uuid and exists (select from fence)
    )`,
  )

/** Removes a command whose post the platform rejected. */
export const cancel = (write: Fenced, command: string) =>
  commit(
    write,
    write.sql`undone as (
      delete from connector_sent where command_id = ${command}::uuid and post is null and exists (select from fence)
    )`,
  )
