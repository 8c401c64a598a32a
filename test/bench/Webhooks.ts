/** Measures deliveries per second, each with its recorded attempt, against the same client posting in a loop. */
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { Effect, Exit, Layer, Scope } from "effect"
import { inStore } from "../faults/Store.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { work } from "./Load.ts"
import { type Sink, startSink } from "./Sink.ts"
import * as Statements from "./Statements.ts"
import { drift, figuresOf, inTurn, shareOf, type Subject } from "./Turns.ts"

const identities = 16
/** Deliveries per Identity in a slice. */
const each = 60

/**
 * Creates deliveries that are due now, as after a busy hour; `Overdue` wakes their actors. A slice lasts from the first
 * to the last delivery.
 */
const deliveries = (deployment: Deployment, sink: Sink): Required<Pick<Subject, "drive" | "prepare">> => {
  const queued = each * identities
  let before = 0
  return {
    prepare: async () => {
      before = sink.count()
      await inStore(
        deployment,
        `insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
         select uuidv7(), w.id, w.identity_id, e.id, e.type, 'queued', now() - interval '1 minute', now()
         from webhook w join event e on e.identity_id = w.identity_id and e.type = 'identity.ready', generate_series(1, ${each})`,
      )
    },
    drive: async () => {
      await until("the first delivery", () => sink.count() > before)
      const counted = sink.count()
      const start = performance.now()
      await until("all deliveries", () => sink.count() - before >= queued, 60)
      const seconds = (performance.now() - start) / 1000
      // The time covers deliveries after the first observed one; the CPU time covers all.
      const of = Math.max(1, sink.count() - counted) / queued
      return { done: queued, wrong: 0, seconds: seconds / of, p50: Number.NaN, p99: Number.NaN }
    },
  }
}

export const webhook = async (): Promise<Row> => {
  const deployment = await deploy({ postgres: Statements.settings })
  const sink = await startSink()
  const scope = Scope.makeUnsafe()
  try {
    await Statements.prepare(deployment)
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const made = await Promise.all(Array.from({ length: identities }, () => makeIdentity(service.base, owner.session)))
    for (const { handle } of made) {
      await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
        token: owner.session,
        body: { url: sink.url, event_types: ["email.sent"] },
      })
    }
    const run = Effect.runPromiseWith(
      await Effect.runPromise(Layer.buildWithScope(GuardedClient.layer({ allowPrivate: true }), scope)),
    )
    const client = await run(Effect.service(GuardedClient))
    const post = {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ type: "email.received", data: "x".repeat(400) }),
    }
    const queue = deliveries(deployment, sink)
    const got = await inTurn(
      {
        posts: { drive: work(64, () => run(client.post(sink.url, post))) },
        ours: { ...queue, pid: service.child.pid!, postmaster: deployment.postgres() },
      },
      { rounds: 4 },
    )
    const details = await Statements.mostExpensive(deployment, queue)
    const remaining = () =>
      inStore<{ n: number }>(deployment, "select count(*)::int as n from delivery where status <> 'delivered'")
    await until("every record", async () => (await remaining())[0]!.n === 0)
    return {
      id: "deliveries",
      ok: true,
      what: `deliveries of ${identities} Identities to a local receiver, each recorded, compared with the same client sending plain requests`,
      unreliable: drift({ rate: { "the posts": got.posts } }),
      goals: [{ what: "deliveries/s to posts", value: shareOf(got.ours, got.posts), atLeast: 0.5 }],
      figures: { ...figuresOf("ours", got.ours), ...figuresOf("posts", got.posts) },
      details,
    }
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await sink.stop()
    await deployment.stop()
  }
}
