/**
 * The Identity actor: the one writer of everything an Identity owns. Its entity id is the canonical Handle; its
 * messages are in `@svc/domain/identity/IdentityProtocol`. Writes run one at a time, each one commit; what outlives a
 * call (saga, deliveries) is rows, driven by the {@link Work} message.
 */
import { IdentityActor, MailRefused } from "@svc/domain/identity/IdentityProtocol"
import {
  AccountDeleting,
  HandleTaken,
  IdentityBusy,
  IdentityNotReady,
  IdentityQuotaExhausted,
  NotFound,
} from "@svc/domain/problems/Problem"
import { Clock, Effect } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import type { Statement } from "effect/sql"
import * as Cards from "../card/Cards.ts"
import * as Mailbox from "../mail/Mailbox.ts"
import * as MailSettings from "../mail/MailSettings.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as TunnelLinks from "../tunnel/TunnelLinks.ts"
import * as TunnelSettings from "../tunnel/TunnelSettings.ts"
import * as DeliveryQueue from "../webhooks/DeliveryQueue.ts"
import * as Webhooks from "../webhooks/Webhooks.ts"
import { rotate } from "./KeyRotation.ts"
import { type Activation, make as makeOwnership, type Owned, sagaJson, type Written } from "./Ownership.ts"
import * as Saga from "./Saga.ts"
import * as SagaRunner from "./SagaRunner.ts"
import * as Worker from "./Worker.ts"

/** Limits of the deployment (decisions.md "Limits"). */
export interface IdentityLimits {
  /** Identities an Org may ever create. */
  readonly identityQuota: number
  /** Bytes a Mailbox holds. */
  readonly mailboxBytes: number
}

const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

/** The Identity, if it exists and belongs to the asking Org; of another Org it does not exist. */
const mine = (activation: Activation, orgId: string): Effect.Effect<Owned, NotFound> =>
  activation.identity !== undefined && activation.identity.orgId === orgId
    ? Effect.succeed(activation.identity)
    : Effect.fail(new NotFound({ detail: "There is no such Identity." }))

const started = (identity: Owned, saga: Owned["saga"], status: Owned["status"], at: Date): Owned => ({
  ...identity,
  saga,
  status,
  sagaDueAt: new Date(at.getTime() + Timing.sagaLeaseMillis),
})

export const layer = (limits: IdentityLimits) =>
  IdentityActor.toLayer(
    Effect.gen(function* () {
      const address = yield* Entity.CurrentAddress
      const canonical = address.entityId as string
      const sql = yield* Writes
      const sealing = yield* Sealing
      const ownership = yield* makeOwnership(canonical)
      const clientFor = yield* IdentityActor.client
      const deliveries = yield* DeliveryQueue.make
      const worker = yield* Worker.make({
        ownership,
        sagas: yield* SagaRunner.make,
        deliveries,
        // Work runs inside a message, so that the actor stays in memory and is drained on shutdown.
        start: Effect.asVoid(clientFor(canonical).Work(undefined, { discard: true })),
      })

      /** Commits the saga's next state together with the Identity's status. */
      const commitSaga = (identity: Owned, next: Owned) =>
        ownership.write((_, fence) =>
          sql<{ owned: boolean }>`
            with ${fence}, moved as (
              update identity set saga = ${sagaJson(next.saga)}::jsonb, saga_due_at = ${next.sagaDueAt}, status = ${next.status}
              where id = ${identity.id} and exists (select from fence) returning id)
            select exists (select from fence) as owned`.pipe(
            Effect.map(([row]) => (row?.owned === true ? { value: undefined, identity: next } : undefined)),
          ),
        )

      /** A write to an Identity that is ready, at the time of the call. */
      const onReady = <A, E>(
        orgId: string,
        commit: (identity: Owned, fence: Statement.Fragment, at: Date) => Effect.Effect<Written<A> | undefined, E>,
      ) =>
        Effect.gen(function* () {
          const identity = yield* mine(yield* ownership.state, orgId)
          if (identity.status !== "ready") return yield* notReady(identity)
          const at = yield* now
          return yield* ownership.write((_, fence) => commit(identity, fence, at))
        })

      const wakeFor = (queued: number) => (queued > 0 ? worker.wake : Effect.void)

      return IdentityActor.of({
        Create: Effect.fnUntraced(function* ({ payload }) {
          const { identity } = yield* ownership.state
          // The same command again, after a crash between commit and reply.
          if (identity?.id === payload.identity_id) return
          if (identity !== undefined) return yield* taken
          const at = yield* now
          const saga = Saga.start("provisioning", at)
          const due = new Date(at.getTime() + Timing.sagaLeaseMillis)
          yield* ownership.write((_, fence) =>
            sql<{ owned: boolean; made: boolean; status: string; data_key: Uint8Array }>`
              with ${fence},
              quota as (
                update org set identities_created = identities_created + 1
                where id = ${payload.org_id}::uuid and status = 'active' and identities_created < ${limits.identityQuota}
                  and exists (select from fence)
                returning id, data_key
              ),
              name as (
                insert into handle (canonical, handle, org_id, registered_at)
                select ${canonical}::text, ${payload.handle}::text, id, ${at}::timestamptz from quota
                returning canonical
              ),
              made as (
                insert into identity (id, canonical, handle, org_id, status, saga, saga_due_at, created_at)
                select ${payload.identity_id}::uuid, canonical, ${payload.handle}::text, ${payload.org_id}::uuid, 'provisioning',
                       ${sagaJson(saga)}::jsonb, ${due}::timestamptz, ${at}::timestamptz
                from name
                returning id
              )
              select exists (select from fence) as owned, exists (select from made) as made, o.status, o.data_key
              from org o where o.id = ${payload.org_id}::uuid`.pipe(
              // The name's unique constraint undoes the whole statement, the quota's count included.
              Effect.catchIf(
                (error) => error.reason._tag === "UniqueViolation",
                () => taken,
              ),
              Effect.flatMap(
                ([row]): Effect.Effect<Written<void> | undefined, AccountDeleting | IdentityQuotaExhausted> => {
                  if (row === undefined || row.status !== "active") {
                    return Effect.fail(new AccountDeleting({ detail: "The account is being deleted." }))
                  }
                  if (!row.owned) return Effect.succeed(undefined)
                  if (!row.made) {
                    return Effect.fail(
                      new IdentityQuotaExhausted({
                        detail: `The Org has created its ${limits.identityQuota} Identities.`,
                      }),
                    )
                  }
                  return Effect.map(Effect.orDie(sealing.openDataKey(payload.org_id, row.data_key)), (dataKey) => ({
                    value: undefined,
                    identity: {
                      id: payload.identity_id,
                      handle: payload.handle,
                      orgId: payload.org_id,
                      status: "provisioning" as const,
                      saga,
                      sagaDueAt: due,
                      dataKey,
                    },
                  }))
                },
              ),
            ),
          )
          yield* worker.wake
        }),

        Retry: Effect.fnUntraced(function* ({ payload }) {
          const identity = yield* mine(yield* ownership.state, payload.org_id)
          if (identity.saga.status !== "failed") return
          const status = identity.saga.kind === "teardown" ? "deleting" : "provisioning"
          yield* commitSaga(identity, started(identity, Saga.rerun(identity.saga), status, yield* now))
          yield* worker.wake
        }),

        Delete: Effect.fnUntraced(function* ({ payload }) {
          const identity = yield* mine(yield* ownership.state, payload.org_id)
          if (identity.status === "provisioning" && payload.account !== true) {
            return yield* new IdentityBusy({ detail: "The Identity is being provisioned.", retry_after_seconds: 1 })
          }
          if (identity.status === "deleting" && identity.saga.status !== "failed") return
          const at = yield* now
          const saga = identity.status === "deleting" ? Saga.rerun(identity.saga) : Saga.start("teardown", at)
          yield* commitSaga(identity, started(identity, saga, "deleting", at))
          yield* worker.wake
        }),

        Acknowledge: Effect.fnUntraced(function* ({ payload }) {
          const identity = yield* mine(yield* ownership.state, payload.org_id)
          // Before `ready` nothing was shown yet, so nothing is forgotten.
          if (identity.status !== "ready") return
          yield* ownership.write((_, fence) =>
            sql<{ owned: boolean }>`
              with ${fence}, forgotten as (delete from show_once where identity_id = ${identity.id} and exists (select from fence))
              select exists (select from fence) as owned`.pipe(
              Effect.map(([row]) => (row?.owned === true ? { value: undefined } : undefined)),
            ),
          )
        }),

        ReceiveMail: Effect.fnUntraced(function* ({ payload }) {
          const { identity } = yield* ownership.state
          if (identity === undefined || identity.status === "deleting")
            return yield* new MailRefused({ reason: "gone" })
          if (identity.status !== "ready") return yield* new MailRefused({ reason: "not_yet" })
          const received = yield* ownership.write((_, fence) =>
            Mailbox.receive(sql, identity, fence, payload, limits.mailboxBytes),
          )
          yield* wakeFor(received.queued)
        }),

        RefuseMail: Effect.fnUntraced(function* ({ payload }) {
          const { identity } = yield* ownership.state
          if (identity?.status !== "ready") return
          const at = yield* now
          const refused = yield* ownership.write((_, fence) => Mailbox.refuse(sql, identity, fence, payload, at))
          yield* wakeFor(refused.queued)
        }),

        RotateKey: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) =>
            Effect.provideService(rotate(sql, identity, fence, at), Sealing, sealing),
          ),

        RemoveMessage: Effect.fnUntraced(function* ({ payload }) {
          const identity = yield* mine(yield* ownership.state, payload.org_id)
          yield* ownership.write((_, fence) => Mailbox.remove(sql, identity, fence, payload.message_id))
        }),

        AllowRecipient: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) =>
            MailSettings.allow(sql, identity, fence, payload.address, at),
          ),

        DisallowRecipient: ({ payload }) =>
          onReady(payload.org_id, (identity, fence) => MailSettings.disallow(sql, identity, fence, payload.address)),

        SetDisclosure: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) =>
            MailSettings.setDisclosure(sql, identity, fence, payload, at),
          ),

        SwitchMail: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) => MailSettings.turn(sql, identity, fence, payload, at)).pipe(
            Effect.flatMap(wakeFor),
          ),

        PatchCard: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) => Cards.patch(sql, identity, fence, payload, at)).pipe(
            Effect.flatMap(wakeFor),
          ),

        PatchWebhook: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) => Webhooks.patch(sql, identity, fence, payload, at)),

        RemoveWebhook: Effect.fnUntraced(function* ({ payload }) {
          const identity = yield* mine(yield* ownership.state, payload.org_id)
          yield* ownership.write((_, fence) => Webhooks.remove(sql, identity, fence, payload.webhook_id))
        }),

        TestWebhook: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) => Webhooks.test(sql, identity, fence, payload, at)).pipe(
            Effect.andThen(worker.wake),
          ),

        RotateSecret: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) =>
            Effect.provideService(Webhooks.rotateSecret(sql, identity, fence, payload.secret_id, at), Sealing, sealing),
          ).pipe(Effect.tap(deliveries.secretsChanged)),

        PatchTunnel: ({ payload }) =>
          onReady(payload.org_id, (identity, fence) =>
            Effect.provideService(
              TunnelSettings.patch(sql, identity, canonical, fence, payload.patch),
              Sealing,
              sealing,
            ),
          ),

        TunnelChanged: Effect.fnUntraced(function* () {
          const { identity } = yield* ownership.state
          if (identity?.status !== "ready") return
          const at = yield* now
          const queued = yield* ownership.write((_, fence) => TunnelLinks.noteChange(sql, identity, fence, at))
          yield* wakeFor(queued)
        }),

        RegisterWebhook: ({ payload }) =>
          onReady(payload.org_id, (identity, fence, at) =>
            Effect.provideService(Webhooks.register(sql, identity, fence, payload, at), Sealing, sealing),
          ).pipe(
            // The first Webhook brings the secret.
            Effect.tap(deliveries.secretsChanged),
          ),

        Replay: Effect.fnUntraced(function* ({ payload }) {
          const identity = yield* mine(yield* ownership.state, payload.org_id)
          const at = yield* now
          yield* ownership.write((_, fence) => Webhooks.replay(sql, identity, fence, payload, at))
          yield* worker.wake
        }),

        Work: () => Rpc.fork(worker.run),
      })
    }),
    { maxIdleTime: Timing.actorIdle, disableFatalDefects: true },
  )

const taken = Effect.fail(new HandleTaken({ detail: "The Handle, or a spelling of it, is held or was held." }))

const notReady = (identity: Owned) =>
  Effect.fail(
    new IdentityNotReady({
      detail: `The Identity is ${identity.status}.`,
      agent_hint: identity.status === "provisioning" ? "wait" : "stop",
    }),
  )
