/**
 * Defers or refuses suspicious clients: those on DNS block lists (RFC 5782), and unknown ones (greylisting, RFC 6647).
 * Both are off by default. A block list that does not respond counts as not listing the client.
 */
import { createHash } from "node:crypto"
import { customerOf, reversed } from "@svc/cluster/net/ClientNetwork"
import { Writes } from "@svc/cluster/store/Database"
import { Clock, Context, Effect, Layer } from "effect"
import { Timing } from "../Timing.ts"
import { Resolver } from "./Resolver.ts"

interface ScreeningSettings {
  /** Zones of block lists, such as `zen.spamhaus.org`. */
  readonly blockLists: ReadonlyArray<string>
  readonly greylisting: boolean
}

const make = (settings: ScreeningSettings) =>
  Effect.gen(function* () {
    const resolver = yield* Resolver
    const sql = yield* Writes

    /** Lists answer with 127.0.0.0/8. An answer in 127.255.255.0/24 means that the query was refused. */
    const isOnList = (name: string) =>
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
        const found = yield* Effect.forEach(settings.blockLists, (zone) => isOnList(`${name}.${zone}`), {
          concurrency: "unbounded",
        })
        return found.includes(true)
      }),

      /**
       * Returns whether this client, sender and recipient were first seen together less than {@link
       * Timing.greylistMillis} ago.
       */
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
