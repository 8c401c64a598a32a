/**
 * Whom an operator does not want to hear from at once: clients on block lists in DNS (RFC 5782), and clients not seen
 * before (RFC 6647, greylisting). Both are off unless the settings ask for them. A list that does not answer lists nobody.
 */
import { createHash } from "node:crypto"
import { customerOf, reversed } from "@svc/cluster/net/ClientNetwork"
import { Writes } from "@svc/cluster/store/Database"
import { Clock, Context, Effect, Layer } from "effect"
import { Timing } from "../Timing.ts"
import { Resolver } from "./Resolver.ts"

export interface ScreeningSettings {
  /** Zones of block lists, such as `zen.spamhaus.org`. */
  readonly blockLists: ReadonlyArray<string>
  readonly greylisting: boolean
}

const make = (settings: ScreeningSettings) =>
  Effect.gen(function* () {
    const resolver = yield* Resolver
    const sql = yield* Writes

    /** Lists answer with 127.0.0.0/8; 127.255.255.0/24 says that they would not answer us. */
    const lists = (name: string) =>
      resolver.lookup(name, "A").pipe(
        Effect.map((records) =>
          records.some(
            (record) => typeof record === "string" && record.startsWith("127.") && !record.startsWith("127.255.255."),
          ),
        ),
        Effect.orElseSucceed(() => false),
        Effect.timeoutOrElse({ duration: Timing.blockList, orElse: () => Effect.succeed(false) }),
      )

    return {
      isListed: Effect.fnUntraced(function* (address: string) {
        const name = reversed(address)
        if (name === undefined || settings.blockLists.length === 0) return false
        const found = yield* Effect.forEach(settings.blockLists, (zone) => lists(`${name}.${zone}`), {
          concurrency: "unbounded",
        })
        return found.includes(true)
      }),

      /** Whether client, sender and recipient have not been seen together, or only a moment ago. */
      isTooNew: Effect.fnUntraced(function* (address: string, sender: string, recipient: string) {
        if (!settings.greylisting) return false
        const key = new Uint8Array(
          createHash("sha256")
            .update(JSON.stringify([customerOf(address), sender.toLowerCase(), recipient.toLowerCase()]))
            .digest(),
        )
        const now = yield* Clock.currentTimeMillis
        const at = new Date(now)
        const [row] = yield* sql<{ first_seen_at: Date }>`
          insert into greylist (key, first_seen_at, seen_at) values (${key}, ${at}, ${at})
          on conflict (key) do update set seen_at = excluded.seen_at
          returning first_seen_at`
        return row !== undefined && now - row.first_seen_at.getTime() < Timing.greylistMillis
      }),
    }
  })

export class Screening extends Context.Service<Screening, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/Screening",
) {
  static readonly layer = (settings: ScreeningSettings) => Layer.effect(Screening, make(settings))
}
