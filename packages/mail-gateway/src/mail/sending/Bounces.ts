/**
 * Accepts mail to bounce addresses: only authentic addresses, only from mail servers, and limited in number. The
 * failures that it reports for recipients of that message are passed to the Identity's actor. Everything else is
 * ignored.
 */
import { ask } from "@svc/cluster/actor/Ask"
import { customerOf } from "@svc/cluster/net/ClientNetwork"
import { Identities } from "@svc/cluster/actor/Identities"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Reads } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { BoundedMap } from "@svc/domain/BoundedMap"
import * as Gateway from "../../Timing.ts"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import * as RecipientAddress from "../RecipientAddress.ts"
import { read } from "./BounceAddress.ts"
import type { Failure } from "./BounceReport.ts"

/** The report is undecided; the sender retries later. */
class BouncesUnavailable extends Schema.TaggedError<BouncesUnavailable>()("BouncesUnavailable", {}) {}

/**
 * The bounces accepted per message, domain and client within the window, and the number of counters kept. Clients are
 * counted separately because every recipient sees the address and could use up a shared limit.
 */
const limits = { each: 20, counted: 50_000 }

/** Reports have a null sender (RFC 5321 section 4.5.5). Some servers use their own address. */
const isServer = (sender: string) => sender === "" || /^mailer-daemon(?:@|$)/i.test(sender)

interface Row {
  readonly message_id: string
  readonly canonical: string
  readonly addresses: ReadonlyArray<string>
}

/** Returns which of the message's recipients a failure concerns: null for all of them, undefined for none. */
export const recipientOf = (failure: Failure, ours: ReadonlyArray<string>): string | null | undefined => {
  for (const address of failure.addresses) {
    const named = ours.find((one) => one.toLowerCase() === address)
    if (named !== undefined) return named
  }
  // A single recipient may have been forwarded to an unknown address.
  if (ours.length === 1) return ours[0]
  return failure.addresses.length === 0 ? null : undefined
}

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const sealing = yield* Sealing
  const actors = yield* Identities
  const counts = new BoundedMap<string, { count: number; until: number }>(limits.counted)

  const keyOf = (outboxId: string, client: string) => `${outboxId} ${customerOf(client)}`

  const isTooMany = (outboxId: string, client: string, now: number): boolean => {
    const known = counts.get(keyOf(outboxId, client))
    return known !== undefined && known.until > now && known.count >= limits.each
  }

  const count = (outboxId: string, client: string, now: number): void => {
    const key = keyOf(outboxId, client)
    const known = counts.get(key)
    if (known !== undefined && known.until > now) return void known.count++
    counts.set(key, { count: 1, until: now + Gateway.Timing.bounceWindowMillis })
  }

  const idOf = (address: string) => read(sealing, RecipientAddress.split(address).local)

  return {
    /** Returns whether the address is an authentic bounce address and this client may use it. */
    judge: (
      address: string,
      sender: string,
      client: string,
    ): Effect.Effect<"not_ours" | "take" | "not_a_server" | "too_many"> =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const id = idOf(address)
        if (id === undefined) return "not_ours"
        if (!isServer(sender)) return "not_a_server"
        return isTooMany(id, client, now) ? "too_many" : "take"
      }),

    /** Counts an accepted message once for each bounce address. */
    accepted: (addresses: ReadonlyArray<string>, client: string): Effect.Effect<void> =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const ids = new Set(addresses.map(idOf).filter((id) => id !== undefined))
        for (const id of ids) count(id, client, now)
      }),

    /** Records the failures with the Identity. Repeating this changes nothing. */
    record: Effect.fn("Bounces.record")(
      function* (address: string, failures: ReadonlyArray<Failure>) {
        const outbox_id = idOf(address)
        if (outbox_id === undefined || failures.length === 0) return
        const [row] = yield* reads<Row>`
          select o.message_id, i.canonical, array_agg(r.address) as addresses
          from outbox o join identity i on i.id = o.identity_id
          join outgoing_recipient r on r.message_id = o.message_id and r.outbox_id = o.id
          where o.id = ${outbox_id} group by o.message_id, i.canonical`
        // The message or its Identity has been deleted.
        if (row === undefined) return
        const recorded = new Set<string | null>()
        for (const failure of failures) {
          const recipient = recipientOf(failure, row.addresses)
          if (recipient === undefined || recorded.has(recipient)) continue
          recorded.add(recipient)
          const { status, diagnostic, hard } = failure
          yield* ask(
            actors.of(row.canonical).RecordBounce({
              message_id: row.message_id,
              outbox_id,
              recipient,
              status,
              diagnostic,
              hard,
            }),
            Timing.askSmtp,
          )
        }
      },
      (effect) =>
        effect.pipe(
          Effect.catchTags({ SqlError: () => new BouncesUnavailable(), unavailable: () => new BouncesUnavailable() }),
          Effect.catchDefect(() => new BouncesUnavailable()),
        ),
    ),
  }
})

export class Bounces extends Context.Service<Bounces, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/sending/Bounces",
) {
  static readonly layer = Layer.effect(Bounces, make)
}
