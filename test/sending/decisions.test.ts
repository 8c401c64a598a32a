/** Decisions about mail that waits for approval: who may decide, and when a decision is rejected. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { fromPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, waitUntil } from "../harness/Actors.ts"
import { recordingTransport, acceptAll } from "../harness/Transport.ts"
import { correspondent, keyOf } from "./Correspondent.ts"

const transport = recordingTransport()

layer(actors({ transport }))("A decision about waiting mail", (it) => {
  it.effect("is made by its own Identity, and an approval only while outgoing mail is active", () =>
    Effect.gen(function* () {
      transport.answering.outside = acceptAll
      const to = "grace@decided.example"
      const [ada, bob] = [yield* correspondent("adadecides", [to]), yield* correspondent("bobdecides", [to])]
      for (const one of [ada, bob]) yield* one.switchMail({ approval: "required" })
      const sent = yield* ada.send({ to: [to], text: "May I?" })
      const decide = ({ actor, org_id }: typeof ada, approve: boolean) =>
        ask(
          actor.DecideMail(
            { org_id, message_id: fromPublic("msg_", sent.id)!, approve, reason: null },
            onBehalfOf(keyOf("session")),
          ),
        )
      for (const approve of [true, false]) {
        expect(yield* Effect.flip(decide(bob, approve))).toMatchObject({ code: "not_found" })
      }
      yield* ada.switchMail({ outgoing: "stopped" })
      expect(yield* Effect.flip(decide(ada, true))).toMatchObject({ code: "mail_paused" })
      expect(yield* ada.rows).toMatchObject([{ next: null, attempts: 0 }])
      yield* ada.switchMail({ outgoing: "active" })
      yield* decide(ada, true)
      yield* waitUntil(ada.deliveries, ([row]) => row?.status === "sent")
    }),
  )
})
