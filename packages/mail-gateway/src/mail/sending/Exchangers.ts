/**
 * Which servers take mail for a domain, and in what order (RFC 5321 section 5.1): by preference, at random among equals;
 * the domain itself where it names none; nobody where it says so (RFC 7505). Servers that are ourselves, and what they are
 * preferred to, are left out, so that no mail goes in circles.
 */
import type { SmtpReply } from "@svc/cluster/mail/sending/MailTransport"
import { Effect, Option, Random, Schema } from "effect"
import type { LookupFailed, Resolver } from "../Resolver.ts"

/** Nobody takes mail for the domain, now (`deferred`) or ever. */
export class NoExchanger extends Schema.TaggedError<NoExchanger>()("NoExchanger", {
  isFinal: Schema.Boolean,
  status: Schema.String,
  text: Schema.String,
}) {
  get reply(): SmtpReply {
    return { code: null, status: this.status, text: this.text, host: null }
  }
}

const final = (status: string, text: string) => new NoExchanger({ isFinal: true, status, text })

const MxRecords = Schema.Array(Schema.Struct({ exchange: Schema.String, priority: Schema.Number }))
const Addresses = Schema.Array(Schema.String)

/** Servers of a domain, and addresses of a server, that are tried. */
const limits = { servers: 10, addresses: 4 }

const isAbsent = ({ code }: LookupFailed) => code === "ENOTFOUND" || code === "ENODATA"
const silent = (domain: string) =>
  new NoExchanger({ isFinal: false, status: "4.4.3", text: `DNS does not answer for ${domain}` })

const shuffled = <A>(all: ReadonlyArray<A>) =>
  Effect.map(
    Effect.forEach(all, (one) => Effect.map(Random.next, (place) => ({ one, place }))),
    (placed) => placed.toSorted((a, b) => a.place - b.place).map(({ one }) => one),
  )

const nameOf = (exchange: string) => exchange.replace(/\.$/, "").toLowerCase()

/** The names of the servers, best first. */
export const find = Effect.fnUntraced(function* (
  resolver: Resolver["Service"],
  domain: string,
  ours: ReadonlySet<string>,
) {
  const found = yield* resolver.lookup(domain, "MX").pipe(
    Effect.catchTag("LookupFailed", (error) => {
      if (error.code === "ENOTFOUND") return Effect.fail(final("5.1.2", `The domain ${domain} does not exist`))
      return isAbsent(error) ? Effect.succeed([]) : Effect.fail(silent(domain))
    }),
  )
  const records = Option.getOrElse(Schema.decodeUnknownOption(MxRecords)(found), () => [])
  if (records.length === 0) return [domain]
  if (records.every(({ exchange }) => nameOf(exchange) === "")) {
    return yield* final("5.1.10", `The domain ${domain} takes no mail`)
  }
  const own = records.filter(({ exchange }) => ours.has(nameOf(exchange))).map(({ priority }) => priority)
  const before = Math.min(...own)
  const usable = records.filter(({ exchange, priority }) => nameOf(exchange) !== "" && priority < before)
  if (usable.length === 0) return yield* final("5.4.6", `Mail for ${domain} leads back to us`)
  const ordered = (yield* shuffled(usable)).toSorted((a, b) => a.priority - b.priority)
  return [...new Set(ordered.map(({ exchange }) => nameOf(exchange)))].slice(0, limits.servers)
})

/**
 * The addresses of a server: those of IPv4 first, since many receivers hold a missing name for an IPv6 address against the
 * sender. Empty where it has none.
 */
export const addressesOf = Effect.fnUntraced(function* (resolver: Resolver["Service"], server: string) {
  const look = (type: "A" | "AAAA") =>
    resolver.lookup(server, type).pipe(
      Effect.map((found) => Option.getOrElse(Schema.decodeUnknownOption(Addresses)(found), () => [])),
      Effect.result,
    )
  const answers = [yield* look("A"), yield* look("AAAA")]
  const found = answers.flatMap((answer) =>
    answer._tag === "Success" ? answer.success.slice(0, limits.addresses) : [],
  )
  const silentOnes = answers.filter((answer) => answer._tag === "Failure" && !isAbsent(answer.failure))
  return found.length === 0 && silentOnes.length > 0 ? yield* silent(server) : found
})
