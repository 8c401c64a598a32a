/** The use of limits: what counts, its order in a list of many Identities, and the time of the reset. */
import { expect, layer } from "@effect/vitest"
import { LimitUses } from "@svc/cluster/limits/LimitUses"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { Clock, Effect, Layer } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

const quotas = { identityQuota: 25, mailHourly: 10, mailboxBytes: 1000, tunnelTransfer: 1000 }
const day = Timing.transferWindowMillis

layer(Layer.provideMerge(LimitUses.layer(quotas), actors()))("The use of limits", (it) => {
  it.effect("lists the fullest Identity first, and resets an hour after the oldest message", () =>
    Effect.gen(function* () {
      const [stranger, org] = [yield* makeOrg, yield* makeOrg]
      const sql = yield* Writes
      const [half, full, some, unused] = [newHandle("ada"), newHandle("bob"), newHandle("cleo"), newHandle("dora")]
      // Half of the hourly mail, four fifths of a Mailbox, a tenth of a Mailbox, nothing.
      const [ada, bob, cleo, dora] = yield* Effect.forEach([half, full, some, unused], (handle) =>
        makeIdentity(org, handle),
      )
      const { id: foreign } = yield* makeIdentity(stranger, newHandle("mallory"))
      yield* sql`update mailbox set bytes_used = 999 where identity_id = ${foreign}`
      yield* sql`update org set identities_created = 9 where id = ${stranger}`
      const now = yield* Clock.currentTimeMillis
      const oldest = new Date(now - Timing.mailHourMillis + 60_000)
      const anHourOld = new Date(now - Timing.mailHourMillis)
      for (const at of [anHourOld, oldest, ...Array.from({ length: 4 }, () => new Date(now))])
        yield* sql`insert into mail_use (identity_id, at) values (${ada!.id}, ${at})`
      yield* sql`update mailbox set bytes_used = 800 where identity_id = ${bob!.id}`
      yield* sql`update mailbox set bytes_used = 100 where identity_id = ${cleo!.id}`
      const today = Math.floor(now / day)
      yield* sql`
        insert into tunnel_transfer (org_id, day, bytes) values
          (${stranger}, ${new Date(now)}::date, 999), (${org}, ${new Date(now - day)}::date, 900), (${org}, ${new Date(now)}::date, 70)`

      const transfer = { name: "tunnel_transfer", identity: null, unit: "bytes", used: 70, limit: 1000, window: "day" }
      const ofTunnels = { ...transfer, resets_at: new Date((today + 1) * day) }
      const identities = { name: "identity_quota", identity: null, unit: "identities", used: 4, limit: 25 }
      const uses = (identity: string, sent: number, bytes: number, resets_at: Date | null) => [
        { name: "mail_hourly", identity, unit: "messages", used: sent, limit: 10, window: "hour", resets_at },
        { name: "mailbox_bytes", identity, unit: "bytes", used: bytes, limit: 1000, window: null, resets_at: null },
      ]
      const list = (id?: string) =>
        Effect.flatMap(LimitUses, (limits) => limits.list(org, id as IdentityId | undefined))
      const resets = new Date(oldest.getTime() + Timing.mailHourMillis)
      expect(yield* list()).toEqual([
        { ...identities, window: null, resets_at: null },
        ofTunnels,
        ...uses(full, 0, 800, null),
        ...uses(half, 5, 0, resets),
        ...uses(some, 0, 100, null),
      ])
      expect(yield* list(ada!.id)).toEqual([ofTunnels, ...uses(half, 5, 0, resets)])
      expect(yield* list(dora!.id)).toEqual([ofTunnels, ...uses(unused, 0, 0, null)])
      // An Identity of another account has no uses here.
      expect(yield* list(foreign)).toEqual([ofTunnels])
    }),
  )
})
