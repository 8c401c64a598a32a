/**
 * Mail to our bounce addresses: taken for those that we made, from servers only, and so many for each. What it says of a
 * recipient of that very message goes to the actor of the Identity that sent it; nothing of it is stored, answered or
 * believed beyond that.
 */
import { ask } from "@svc/cluster/actor/Ask"
import { customerOf } from "@svc/cluster/net/ClientNetwork"
import { Identities } from "@svc/cluster/actor/Identities"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Reads } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import * as Gateway from "../../Timing.ts"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import * as RecipientAddress from "../RecipientAddress.ts"
import { read } from "./BounceAddress.ts"
import type { Failure } from "./BounceReport.ts"

/** Nothing is decided; the sender tries again later. */
export class BouncesUnavailable extends Schema.TaggedError<BouncesUnavailable>()("BouncesUnavailable", {}) {}

/**
 * Bounces of one message to one domain that a client hands in within the window; more say nothing new. Each client has its
 * own, since every recipient sees the address: nobody can use up what a server beside him has to say. And how many are
 * counted.
 */
const limits = { each: 20, counted: 50_000 }

/** RFC 5321 section 4.5.5: reports have no sender. Some servers sign theirs. */
const isServer = (sender: string) => sender === "" || /^mailer-daemon(?:@|$)/i.test(sender)

interface Row {
  readonly message_id: string
  readonly canonical: string
  readonly addresses: ReadonlyArray<string>
}

/** The recipient of ours that a failure is about: null for all of them, undefined for none. */
export const recipientOf = (failure: Failure, ours: ReadonlyArray<string>): string | null | undefined => {
  for (const address of failure.addresses) {
    const named = ours.find((one) => one.toLowerCase() === address)
    if (named !== undefined) return named
  }
  // A server beyond it forwarded the mail and names an address that we do not know; where there is but one it is that.
  if (ours.length === 1) return ours[0]
  return failure.addresses.length === 0 ? null : undefined
}

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const sealing = yield* Sealing
  const actors = yield* Identities
  const counts = new Map<string, { count: number; until: number }>()

  const keyOf = (outboxId: string, client: string) => `${outboxId} ${customerOf(client)}`

  const isTooMany = (outboxId: string, client: string, now: number): boolean => {
    const known = counts.get(keyOf(outboxId, client))
    return known !== undefined && known.until > now && known.count >= limits.each
  }

  const count = (outboxId: string, client: string, now: number): void => {
    const key = keyOf(outboxId, client)
    const known = counts.get(key)
    if (known !== undefined && known.until > now) return void known.count++
    counts.delete(key)
    if (counts.size >= limits.counted) counts.delete(counts.keys().next().value!)
    counts.set(key, { count: 1, until: now + Gateway.Timing.bounceWindowMillis })
  }

  const idOf = (address: string) => read(sealing, RecipientAddress.split(address).local)

  return {
    /** Whether the address is a bounce address that we made, and whether this sender may use it from there. */
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

    /** Counts a message that was taken: one to each address, however often it was named. */
    taken: (addresses: ReadonlyArray<string>, client: string): Effect.Effect<void> =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const ids = new Set(addresses.map(idOf).filter((id) => id !== undefined))
        for (const id of ids) count(id, client, now)
      }),

    /** Tells the Identity what did not arrive. Telling it again changes nothing. */
    record: Effect.fn("Bounces.record")(
      function* (address: string, failures: ReadonlyArray<Failure>) {
        const outbox_id = idOf(address)
        if (outbox_id === undefined || failures.length === 0) return
        const [row] = yield* reads<Row>`
          select o.message_id, i.canonical, array_agg(r.address) as addresses
          from outbox o join identity i on i.id = o.identity_id
          join outgoing_recipient r on r.message_id = o.message_id and r.outbox_id = o.id
          where o.id = ${outbox_id} group by o.message_id, i.canonical`
        // The message, or who sent it, has gone meanwhile.
        if (row === undefined) return
        const told = new Set<string | null>()
        for (const failure of failures) {
          const recipient = recipientOf(failure, row.addresses)
          if (recipient === undefined || told.has(recipient)) continue
          told.add(recipient)
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
