/**
 * Finds the mail servers of a domain (RFC 5321 section 5.1): by preference, in random order among equals; the domain
 * itself if it has no MX records; none if it declares so (RFC 7505). Servers that are this service, and those they are
 * preferred to, are excluded to prevent loops.
 */
import type { SmtpReply } from "@svc/cluster/mail/sending/MailTransport"
import { Effect, Option, Random, Schema } from "effect"
import type { LookupFailed, Resolver } from "../Resolver.ts"

/** No server accepts mail for the domain, permanently if `isFinal`. */
class NoExchanger extends Schema.TaggedError<NoExchanger>()("NoExchanger", {
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

/** The maximum number of servers per domain, and addresses per server and family, that are tried. */
const limits = { servers: 10, addresses: 4 }

const isAbsent = ({ code }: LookupFailed) => code === "ENOTFOUND" || code === "ENODATA"
const noResponse = (domain: string) =>
  new NoExchanger({ isFinal: false, status: "4.4.3", text: `DNS does not respond for ${domain}` })

const shuffled = <A>(all: ReadonlyArray<A>) =>
  Effect.map(
    Effect.forEach(all, (one) => Effect.map(Random.next, (place) => ({ one, place }))),
    (placed) => placed.toSorted((a, b) => a.place - b.place).map(({ one }) => one),
  )

const nameOf = (exchange: string) => exchange.replace(/\.$/, "").toLowerCase()

/** Returns the names of the servers, best first. */
export const find = Effect.fnUntraced(function* (
  resolver: Resolver["Service"],
  domain: string,
  ours: ReadonlySet<string>,
) {
  const found = yield* resolver.lookup(domain, "MX").pipe(
    Effect.catchTag("LookupFailed", (error) => {
      if (error.code === "ENOTFOUND") return Effect.fail(final("5.1.2", `The domain ${domain} does not exist`))
      return isAbsent(error) ? Effect.succeed([]) : Effect.fail(noResponse(domain))
    }),
  )
  const records = Option.getOrElse(Schema.decodeUnknownOption(MxRecords)(found), () => [])
  if (records.length === 0) return [domain]
  if (records.every(({ exchange }) => nameOf(exchange) === "")) {
    return yield* final("5.1.10", `The domain ${domain} does not accept mail`)
  }
  const own = records.filter(({ exchange }) => ours.has(nameOf(exchange))).map(({ priority }) => priority)
  const before = Math.min(...own)
  const usable = records.filter(({ exchange, priority }) => nameOf(exchange) !== "" && priority < before)
  if (usable.length === 0) return yield* final("5.4.6", `Mail for ${domain} would loop back to this server`)
  const ordered = (yield* shuffled(usable)).toSorted((a, b) => a.priority - b.priority)
  return [...new Set(ordered.map(({ exchange }) => nameOf(exchange)))].slice(0, limits.servers)
})

/**
 * Returns the addresses of a server, empty if it has none. IPv4 comes first, since many receivers reject IPv6 senders
 * without a reverse name.
 */
export const addressesOf = Effect.fnUntraced(function* (resolver: Resolver["Service"], server: string) {
  const lookUp = (type: "A" | "AAAA") =>
    resolver.lookup(server, type).pipe(
      Effect.map((found) => Option.getOrElse(Schema.decodeUnknownOption(Addresses)(found), () => [])),
      Effect.result,
    )
  const answers = [yield* lookUp("A"), yield* lookUp("AAAA")]
  const found = answers.flatMap((answer) =>
    answer._tag === "Success" ? answer.success.slice(0, limits.addresses) : [],
  )
  const failures = answers.filter((answer) => answer._tag === "Failure" && !isAbsent(answer.failure))
  return found.length === 0 && failures.length > 0 ? yield* noResponse(server) : found
})
