/**
 * Converts poll results to Events. The row that deduplicates a post and its Event are one commit, so that each post
 * raises one Event.
 */
import { createHash } from "node:crypto"
import type { Heard } from "@svc/domain/connectors/Post"
import { Effect } from "effect"
import { commit, type Fenced, type OwnIdentity, type Write } from "../../actor/Write.ts"
import { raise } from "../../events/Raise.ts"
import { boundedPost } from "../platforms/ResponseBounds.ts"
import type { Account, ReceivedPost } from "../platforms/Platform.ts"
import type { PlatformName } from "@svc/domain/connectors/PlatformName"

/** Groups consecutive posts of the same kind, since a statement raises Events of one type. */
export const groupByKind = (heard: ReadonlyArray<ReceivedPost>): ReadonlyArray<ReadonlyArray<ReceivedPost>> => {
  const found: Array<Array<ReceivedPost>> = []
  for (const one of heard) {
    const last = found.at(-1)
    if (last !== undefined && last[0]!.kind === one.kind) last.push(one)
    else found.push([one])
  }
  return found
}

const typeOf = { mention: "connector.mention", reply: "connector.reply", dm: "connector.dm" } as const satisfies {
  readonly [K in Heard]: string
}

const hash = (key: string) => createHash("sha256").update(key).digest("hex")

const json = (posts: ReadonlyArray<ReceivedPost>) =>
  JSON.stringify(
    posts.map(({ key, post, at }) => {
      const bounded = boundedPost(post)
      return {
        key: hash(key),
        post: { ...bounded, created_at: bounded.created_at.toISOString() },
        at: at.toISOString(),
      }
    }),
  )

/** Raises an Event for each post that has none yet. Returns their number. */
export const raiseEvents = Effect.fnUntraced(function* (
  fenced: Fenced,
  of: { readonly identity: OwnIdentity; readonly platform: PlatformName; readonly account: Account },
  run: ReadonlyArray<ReceivedPost>,
) {
  const { sql, at } = fenced
  const write: Write = { ...fenced, identity: of.identity }
  const { told } = yield* commit<{ told: number }>(
    write,
    sql`given as (
      select distinct on (key) key, post, at, n
      from rows from (jsonb_to_recordset(${json(run)}::jsonb) as (key text, post jsonb, at text)) with ordinality as g (key, post, at, n)
      order by key, n
    ),
    noted as (
      insert into connector_heard (identity_id, platform, key, heard_at)
      select ${of.identity.id}::uuid, ${of.platform}::text, decode(given.key, 'hex'), ${at}::timestamptz from fence, given
      on conflict do nothing
      returning key
    ),
    told as (
      select given.post, given.at from noted join given on decode(given.key, 'hex') = noted.key order by given.n
    ),
    ${raise(write, "told", typeOf[run[0]!.kind], {
      platform: of.platform,
      account: of.account.name,
      post: sql`told.post`,
      at: sql`told.at`,
    })}`,
    { columns: sql`(select count(*)::int from told) as told`, raises: true },
  )
  return told
})
