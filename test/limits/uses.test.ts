/** The use of the limits of Identities: its order in a list of many, and the time of the reset. */
import { expect, layer } from "@effect/vitest"
import { LimitUses } from "@svc/cluster/limits/LimitUses"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Clock, Effect, Layer } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"

const quotas = { identityQuota: 25, mailHourly: 10, mailboxBytes: 1000, tunnelTransfer: 1000 }

layer(Layer.provideMerge(LimitUses.layer(quotas), actors()))("The use of limits", (it) => {
  it.effect("lists the fullest Identity first, and resets an hour after the oldest message", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const sql = yield* Writes
      const now = yield* Clock.currentTimeMillis
      const oldest = new Date(now - Timing.mailHourMillis + 60_000)
      // Half of the hourly mail, four fifths of a Mailbox, a tenth of a Mailbox.
      const [ada, bob, cleo] = [
        yield* makeIdentity(org, "ada"),
        yield* makeIdentity(org, "bob"),
        yield* makeIdentity(org, "cleo"),
      ]
      for (const at of [oldest, ...Array.from({ length: 4 }, () => new Date(now))])
        yield* sql`insert into mail_use (identity_id, at) values (${ada.id}, ${at})`
      yield* sql`update mailbox set bytes_used = 800 where identity_id = ${bob.id}`
      yield* sql`update mailbox set bytes_used = 100 where identity_id = ${cleo.id}`
      const uses = yield* (yield* LimitUses).list(org, undefined)
      expect(uses.filter(({ name }) => name === "mailbox_bytes").map(({ identity }) => identity)).toEqual([
        "bob",
        "ada",
        "cleo",
      ])
      const mail = uses.find(({ name, identity }) => name === "mail_hourly" && identity === "ada")
      expect(mail).toMatchObject({ used: 5, resets_at: new Date(oldest.getTime() + Timing.mailHourMillis) })
    }),
  )
})
