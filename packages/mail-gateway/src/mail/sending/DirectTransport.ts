/**
 * Delivers mail directly to the servers of its domain (`SVC_MAIL_DIRECT`), one after another until one responds. TLS
 * is used if offered, and required with a valid certificate where the domain's MTA-STS policy or the server's
 * TLSA records (DANE, if a validating resolver is configured) demand it. Outside Development only public addresses are
 * connected to, and never the service's own. No other server is tried after one may have received the content.
 */
import { networkInterfaces } from "node:os"
import { isPublic } from "@svc/cluster/net/AddressGuard"
import { MailTransport, type Outcome, type SmtpReply, type Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { within } from "@svc/cluster/store/Deadline"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect, Layer, Option } from "effect"
import type { MTASTSPolicy } from "mailauth"
import { Timing } from "../../Timing.ts"
import { Resolver } from "../Resolver.ts"
import { Dane, type TlsRequirement } from "./dane/Dane.ts"
import * as Tlsa from "./dane/Tlsa.ts"
import * as Destinations from "./Destinations.ts"
import * as Exchangers from "./Exchangers.ts"
import { Letters } from "./Letters.ts"
import * as MtaSts from "./MtaSts.ts"
import * as Outcomes from "./Outcomes.ts"
import { begin, replyOf, type Terms } from "./smtp/Conversation.ts"
import type { Letter } from "./smtp/Letter.ts"

export interface DirectSettings {
  /** The service's host name for EHLO. It must resolve back to the service. */
  readonly helo: string
  /** Names of servers that are this service itself. */
  readonly ours: ReadonlyArray<string>
  /** 25, except in tests. */
  readonly port: number
  /** Development: allows connections to private addresses. */
  readonly allowPrivate: boolean
  /** Certificate authorities trusted in place of those that Node.js knows. */
  readonly ca?: string | undefined
}

type Destination = Parameters<Parameters<ReturnType<typeof Destinations.make>["withSlot"]>[1]>[0]

/** The maximum number of server addresses tried per attempt. */
const maxAddresses = 8

/** The result of one server; `Next` has the reply because of which another one is tried. */
type ServerResult =
  | { readonly _tag: "Done"; readonly outcomes: ReadonlyArray<Outcome> }
  | { readonly _tag: "Next"; readonly reply: SmtpReply }

const ownAddresses = () =>
  new Set(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)))

/** If no TLSA record is usable, any certificate is accepted (RFC 7672 section 2.2). */
const matchesRecords =
  ({ name, records }: TlsRequirement, domain: string): NonNullable<Terms["isIts"]> =>
  (socket) =>
    records.length === 0 || Tlsa.holds(socket, records, [name, domain], Date.now())

/** Keeps connections made under different TLSA records apart. */
const keyOf = ({ name, records }: TlsRequirement) =>
  [
    name,
    ...records.map(({ usage, selector, matching, data }) => `${usage}${selector}${matching}${data.toString("hex")}`),
  ].join()

const make = Effect.fnUntraced(function* (settings: DirectSettings) {
  const resolver = yield* Resolver
  const letters = yield* Letters
  const policies = yield* MtaSts.MtaSts
  const dane = Option.getOrUndefined(yield* Dane)
  const ours = new Set([settings.helo, ...settings.ours].map((name) => name.toLowerCase()))
  const destinations = yield* Effect.acquireRelease(Effect.sync(Destinations.make), (all) => Effect.sync(all.close))

  const mayConnect = (address: string) => settings.allowPrivate || (isPublic(address) && !ownAddresses().has(address))

  /** Tries one address of a server with the given TLS terms. */
  const tryWith = (
    transmission: Transmission,
    letter: Letter,
    destination: Destination,
    server: string,
    address: string,
    tls: Terms["tls"],
    required?: TlsRequirement,
  ): Effect.Effect<ServerResult> => {
    const terms: Terms =
      required === undefined
        ? { name: server, helo: settings.helo, tls, ca: settings.ca }
        : {
            name: required.name,
            helo: settings.helo,
            tls: "judged",
            isIts: matchesRecords(required, transmission.domain),
          }
    const pool = destinations.pool(
      destination,
      `${server} ${address} ${required === undefined ? tls : keyOf(required)}`,
      begin({ host: address, port: settings.port }, terms),
    )
    return pool.transact(letter).pipe(
      Effect.map((outcome): ServerResult => {
        const outcomes = Outcomes.ofTransaction(transmission, outcome, server)
        // No server has the message yet, and another one may accept it.
        if (outcome._tag === "Broken") return { _tag: "Next", reply: Outcomes.withoutReply(outcome.message, server) }
        // Another server would deliver the message again to the recipients that have it. In that case 421 only defers the others.
        const isSent = outcomes.some(({ state }) => state === "sent")
        const busy = outcomes.find(({ reply }) => reply?.code === 421)?.reply
        return isSent || busy == null ? { _tag: "Done", outcomes } : { _tag: "Next", reply: busy }
      }),
      Effect.catchTags({
        Broken: (error) => Effect.succeed<ServerResult>({ _tag: "Next", reply: replyOf(error, server) }),
        Unwelcome: (error) => Effect.succeed<ServerResult>({ _tag: "Next", reply: replyOf(error, server) }),
      }),
    )
  }

  const through = Effect.fnUntraced(function* (
    transmission: Transmission,
    letter: Letter,
    destination: Destination,
    policy: MTASTSPolicy | undefined,
  ) {
    const dns = dane ?? resolver
    const servers = yield* Exchangers.find(dns, transmission.domain, ours)
    const isSecure = dane !== undefined && (yield* dane.isSecure(transmission.domain))
    let last: SmtpReply | undefined
    let left = maxAddresses
    let isPrivate = false
    for (const server of servers) {
      if (policy !== undefined && !MtaSts.names(policy, server)) {
        last ??= {
          ...Outcomes.withoutReply(`The domain's MTA-STS policy does not name ${server}`, server),
          status: "4.7.1",
        }
        continue
      }
      const found = yield* Effect.result(Exchangers.addressesOf(dns, server))
      if (found._tag === "Failure") {
        last = found.failure.reply
        continue
      }
      const required = isSecure ? yield* Effect.result(dane.requirementOf(server)) : undefined
      if (required?._tag === "Failure") {
        // An attacker who withholds the TLSA records could be intercepting the mail (RFC 7672 section 2.1.1).
        last = {
          ...Outcomes.withoutReply(`DNS does not say which certificate ${server} has (DANE)`, server),
          status: "4.7.5",
        }
        continue
      }
      for (const address of found.success) {
        if (!mayConnect(address)) {
          isPrivate = true
          continue
        }
        if (left-- <= 0) break
        const result = yield* tryWith(
          transmission,
          letter,
          destination,
          server,
          address,
          policy === undefined ? "optional" : "required",
          required?.success,
        )
        if (result._tag === "Done") {
          destinations.reached(destination)
          return result.outcomes
        }
        last = result.reply
      }
    }
    if (last === undefined) {
      const why = isPrivate ? "no mail server with a public address" : "no mail server with an address"
      return Outcomes.refused(transmission, {
        ...Outcomes.withoutReply(`The domain ${transmission.domain} has ${why}`, null),
        status: "5.4.4",
      })
    }
    destinations.unreachable(destination, yield* monotonicMillis)
    return Outcomes.deferred(transmission, last)
  })

  const attempt = Effect.fnUntraced(
    function* (transmission: Transmission, destination: Destination) {
      const now = yield* monotonicMillis
      if (destination.backOffUntil > now) {
        return Outcomes.deferred(
          transmission,
          Outcomes.withoutReply("All servers of the domain were unreachable a moment ago", null),
        )
      }
      const letter = yield* letters.of(transmission)
      return yield* through(transmission, letter, destination, yield* policies.enforced(transmission.domain))
    },
    (effect, transmission) =>
      effect.pipe(
        Effect.catchTags({
          NoExchanger: (error) =>
            Effect.succeed(
              error.isFinal
                ? Outcomes.refused(transmission, error.reply)
                : Outcomes.deferred(transmission, error.reply),
            ),
          Unfit: ({ message }) =>
            Effect.succeed(Outcomes.refused(transmission, { code: null, status: "5.6.0", text: message, host: null })),
          unavailable: () => Effect.succeed(Outcomes.held(transmission)),
        }),
      ),
  )

  return {
    carries: { by: "direct" } as const,
    send: Effect.fn("DirectTransport.send")((transmission: Transmission) =>
      within(
        destinations.withSlot(
          transmission.domain,
          (destination) => attempt(transmission, destination),
          Effect.succeed(Outcomes.held(transmission)),
        ),
        Timing.sendMillis,
        () =>
          Effect.succeed(
            Outcomes.deferred(transmission, Outcomes.withoutReply("The delivery attempt timed out", null)),
          ),
      ),
    ),
  }
})

export const layer = (settings: DirectSettings) => Layer.effect(MailTransport, make(settings))
