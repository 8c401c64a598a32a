/** Deliveries/s, each attempt recorded, against the same client posting in a loop. */
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { Effect } from "effect"
import { inStore } from "../faults/Store.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { round, type Row } from "../harness/Report.ts"
import { rate } from "./Throughput.ts"

const queued = 8_000
const identities = 16

export const webhook = async (): Promise<Row> => {
  const deployment = await deploy()
  const receiver = await startReceiver()
  try {
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const made = await Promise.all(Array.from({ length: identities }, () => makeIdentity(service.base, owner.session)))
    for (const { handle } of made) {
      await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
        token: owner.session,
        body: { url: receiver.url, event_types: ["email.sent"] },
      })
    }
    const reference = await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const client = yield* GuardedClient
          const body = JSON.stringify({ type: "email.received", data: "x".repeat(400) })
          return yield* Effect.promise(() =>
            rate(64, 3, () =>
              Effect.runPromise(client.post(receiver.url, { headers: { "content-type": "application/json" }, body })),
            ),
          )
        }).pipe(Effect.provide(GuardedClient.layer({ allowPrivate: true }))),
      ),
    )
    const before = receiver.got.length
    // Deliveries as a busy hour would leave them, due now; `Overdue` wakes their actors.
    await inStore(
      deployment,
      `insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
       select uuidv7(), w.id, w.identity_id, e.id, e.type, 'queued', now() - interval '1 minute', now()
       from webhook w join event e on e.identity_id = w.identity_id and e.type = 'identity.ready', generate_series(1, ${queued / identities})`,
    )
    await until("the first delivery", () => receiver.got.length > before)
    const start = performance.now()
    const counted = receiver.got.length
    await until("all deliveries", () => receiver.got.length - before >= queued, 120)
    const perSecond = Math.round((receiver.got.length - counted) / ((performance.now() - start) / 1000))
    await until(
      "every record",
      async () =>
        (
          await inStore<{ n: number }>(
            deployment,
            "select count(*)::int as n from delivery where status <> 'delivered'",
          )
        )[0]!.n === 0,
    )
    return {
      id: "webhook",
      ok: receiver.got.length - before === queued,
      what: `${queued} deliveries of ${identities} Identities to a local receiver, each recorded, against the same client posting`,
      figures: {
        ratio: round(perSecond / reference.perSecond),
        "ours/s": perSecond,
        "reference/s": reference.perSecond,
      },
    }
  } finally {
    await receiver.stop()
    await deployment.stop()
  }
}
