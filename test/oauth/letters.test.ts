import { type Letter, RelayUnavailable, SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { send } from "@svc/cluster/oauth/GrantNotices"
import { Writes } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { makeOrg, rows, storesLayer } from "../harness/Stores.ts"

layer(storesLayer)("Grant notice", (it) => {
  it.effect("is sent once and waits for the relay", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const sql = yield* Writes
      yield* sql`
        insert into grant_notice (id, org_id, kind, client_name, redirect_host, created_at)
        values (${yield* makeUuidV7}, ${org}, 'created', 'Claude', 'claude.ai', now())`
      const sent: Array<Letter> = []
      let isUp = false
      const mailer = SystemMailer.of({
        send: (letter) =>
          isUp ? Effect.sync(() => void sent.push(letter)) : Effect.fail(new RelayUnavailable({ message: "down" })),
        forward: () => Effect.void,
        keep: () => Effect.void,
      })
      const round = Effect.provideService(send, SystemMailer, mailer)
      yield* round
      expect((yield* rows((reads) => reads`select 1 from grant_notice where org_id = ${org}`)).length).toBe(1)
      isUp = true
      yield* round
      yield* round
      expect(sent.map(({ to, text }) => [to, text.includes("claude.ai"), text.includes("/console/keys")])).toEqual([
        [`${org}@example.org`, true, true],
      ])
    }),
  )
})
