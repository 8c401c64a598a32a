/**
 * Decides which agents sent received messages. A message whose signed field `Agent-Identity` names a DID is stored with
 * a claim, in the commit that makes it durable. This source reads the DID's document afterwards, so that no host of a
 * stranger delays a 250, and a process that crashes loses no claim. The document is not read when the message is, since
 * that would tell the sender when it was read.
 *
 * A proved agent is added to the verdict of the message, with an Event. A claim that is not proved is removed.
 */
import { system } from "@svc/domain/account/Initiator"
import { toPublic } from "@svc/domain/Ids"
import type { Address, ProvedAgent } from "@svc/domain/mail/Message"
import { rfc3339 } from "@svc/domain/Rfc3339"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { commit, type OwnIdentity, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { DidDocuments } from "../proof/DidDocuments.ts"
import { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as NextDue from "../work/NextDue.ts"
import * as SingleRun from "../work/SingleRun.ts"
import type { Source } from "../work/Source.ts"

/** Claims of one run, and documents that it reads at the same time. */
const together = { claims: 50, reads: 8 }

interface Claim {
  readonly message_id: string
  readonly did: string
  readonly domain: string
  readonly attempts: number
  readonly from: Address | null
}

interface Outcome {
  readonly id: string
  readonly public_id: string
  /** The proved agent; null if the claim is not proved. */
  readonly agent: ProvedAgent | null
  /** When a document that could not be read is tried again; null if the claim is decided. */
  readonly next: string | null
}

const record = (write: Write, outcomes: ReadonlyArray<Outcome>) => {
  const { sql, identity } = write
  return commit<{ proved: number }>(
    write,
    sql`
    outcomes as materialized (
      select o.* from jsonb_to_recordset(${JSON.stringify(outcomes)}::jsonb) as o (
        id uuid, public_id text, agent jsonb, next timestamptz) cross join fence
    ),
    postponed as (
      update agent_claim c set attempts = c.attempts + 1, next_attempt_at = o.next from outcomes o
      where c.message_id = o.id and o.next is not null
    ),
    decided as (
      delete from agent_claim c using outcomes o where c.message_id = o.id and o.next is null
      returning o.id, o.public_id, o.agent
    ),
    proved as materialized (
      select d.public_id, d.agent, m.id, m.summary -> 'from' as sender from decided d join message m on m.id = d.id
      where d.agent <> 'null'::jsonb and m.identity_id = ${identity.id}::uuid
    ),
    box as (
      update mailbox set modseq = modseq + 1
      where identity_id = ${identity.id}::uuid and exists (select from proved) returning modseq
    ),
    marked as (
      update message m set summary = jsonb_set(m.summary, '{origin,agent}', p.agent), modseq = box.modseq
      from proved p cross join box where m.id = p.id
    ),
    ${raise(write, "proved", "email.agent_verified", {
      message_id: sql`public_id`,
      from: sql`sender`,
      agent: sql`agent`,
    })}`,
    { raises: true, columns: sql`(select count(*)::int from proved) as proved` },
  )
}

/** Returns when an Identity's next claim is due. */
export class NextClaim extends Context.Service<
  NextClaim,
  { readonly of: (identityId: string) => Effect.Effect<Date | null, SqlError.SqlError> }
>()("@svc/cluster/mail/NextClaim") {
  static readonly layer = Layer.effect(
    NextClaim,
    Effect.map(
      NextDue.make(
        (sql, identityId) => sql`select min(c.next_attempt_at) from agent_claim c where c.identity_id = ${identityId}`,
      ),
      (of) => ({ of }),
    ),
  )
}

export const source: Source<OwnIdentity, ChangeFeed | DidDocuments | NextClaim | Writes> = {
  name: "agent_claims",

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ canonical: string }>`
        select i.canonical from (
          select identity_id, min(next_attempt_at) as due from agent_claim where next_attempt_at <= ${late}
          group by identity_id order by due limit ${atMost}
        ) c join identity i on i.id = c.identity_id order by c.due`,
      (rows) => rows.map(({ canonical }) => canonical),
    ),

  make: Effect.fnUntraced(function* (ownership) {
    const sql = yield* Writes
    const documents = yield* DidDocuments
    const feed = yield* ChangeFeed
    const next = yield* NextClaim
    const one = yield* SingleRun.make

    const judge = Effect.fnUntraced(function* ({ message_id, did, domain, attempts, from }: Claim) {
      const result = yield* Effect.result(documents.names(did, from?.address ?? ""))
      const now = yield* Clock.currentTimeMillis
      const isProved = result._tag === "Success" && result.success
      const wait =
        result._tag === "Failure" && result.failure.isTemporary ? Timing.agentClaimWaitsMillis[attempts] : undefined
      const outcome: Outcome = {
        id: message_id,
        public_id: toPublic("msg_", message_id),
        agent: isProved ? { did, domain, checked_at: rfc3339(new Date(now)) } : null,
        next: wait === undefined ? null : rfc3339(new Date(now + wait)),
      }
      return outcome
    })

    const run = Effect.fnUntraced(function* (identity: OwnIdentity, claims: ReadonlyArray<Claim>) {
      const outcomes = yield* Effect.forEach(claims, judge, { concurrency: together.reads })
      const { proved } = yield* ownership.write(system, (fenced) => record({ ...fenced, identity }, outcomes))
      if (proved > 0) feed.changed(identity.orgId, { resource: "messages", handle: identity.handle })
    })

    return {
      dispatch: Effect.fnUntraced(function* (identity, changed) {
        const now = yield* Clock.currentTimeMillis
        if (!one.isFree(now)) return false
        const claims = yield* sql<Claim>`
          select c.message_id, c.did, c.domain, c.attempts, m.summary -> 'from' as from
          from agent_claim c join message m on m.id = c.message_id
          where c.identity_id = ${identity.id} and c.next_attempt_at <= ${new Date(now)}
          order by c.next_attempt_at limit ${together.claims}`
        if (claims.length === 0) return false
        return yield* one.start(run(identity, claims), "The agents of received messages could not be checked", changed)
      }),
      isSeldomDue: true,
      nextDue: (identity) => Effect.flatMap(next.of(identity.id), one.from),
      isBusy: one.isBusy,
      settle: one.settle,
    }
  }),
}
