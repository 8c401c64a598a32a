/**
 * Mail straight to the servers of its domain (`SVC_MAIL_DIRECT`): one server after the other until one answers, each over
 * TLS where it offers it, and over checked TLS only where the domain's MTA-STS policy or the server's TLSA records want that
 * (DANE, where a validating resolver is set). Only public addresses are connected to, outside Development, and none of our
 * own. Once a server may have the content no other one gets it.
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
import { Dane, type Owed } from "./dane/Dane.ts"
import * as Tlsa from "./dane/Tlsa.ts"
import * as Destinations from "./Destinations.ts"
import * as Exchangers from "./Exchangers.ts"
import { Letters } from "./Letters.ts"
import * as MtaSts from "./MtaSts.ts"
import * as Outcomes from "./Outcomes.ts"
import { begin, replyOf, type Terms } from "./smtp/Conversation.ts"
import type { Letter } from "./smtp/Letter.ts"

export interface DirectSettings {
  /** Our own name, for EHLO; it must lead back to us. */
  readonly helo: string
  /** Names of servers that are ourselves. */
  readonly ours: ReadonlyArray<string>
  /** 25, but in tests. */
  readonly port: number
  /** Development: addresses that are not public are connected to. */
  readonly allowPrivate: boolean
  /** Certificates trusted besides those of the system. */
  readonly ca?: string | undefined
}

type Destination = Parameters<Parameters<ReturnType<typeof Destinations.make>["inTurn"]>[1]>[0]

/** Servers' addresses that one attempt goes through. */
const tries = 8

/** What one server made of it; `next` is the reply with which another one is tried. */
type Tried =
  | { readonly _tag: "Done"; readonly outcomes: ReadonlyArray<Outcome> }
  | { readonly _tag: "Next"; readonly reply: SmtpReply }

const ownAddresses = () =>
  new Set(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)))

/** Where no record can be used TLS is all that is owed (RFC 7672 section 2.2). */
const isOwed =
  ({ name, records }: Owed, domain: string): NonNullable<Terms["isIts"]> =>
  (socket) =>
    records.length === 0 || Tlsa.holds(socket, records, [name, domain], Date.now())

/** So that a connection made under other records is not taken for one under these. */
const keyOf = ({ name, records }: Owed) =>
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

  /** Tries one address of a server with these terms. */
  const tryWith = (
    transmission: Transmission,
    letter: Letter,
    destination: Destination,
    server: string,
    address: string,
    tls: Terms["tls"],
    owed?: Owed,
  ): Effect.Effect<Tried> => {
    const terms: Terms =
      owed === undefined
        ? { name: server, helo: settings.helo, tls, ca: settings.ca }
        : { name: owed.name, helo: settings.helo, tls: "judged", isIts: isOwed(owed, transmission.domain) }
    const pool = destinations.pool(
      destination,
      `${server} ${address} ${owed === undefined ? tls : keyOf(owed)}`,
      begin({ host: address, port: settings.port }, terms),
    )
    return pool.transact(letter).pipe(
      Effect.map((outcome): Tried => {
        const outcomes = Outcomes.ofTransaction(transmission, outcome, server)
        // Nobody has it yet, and another server may be better.
        if (outcome._tag === "Broken") return { _tag: "Next", reply: Outcomes.unheard(outcome.message, server) }
        const replies = outcome._tag === "Answered" ? outcome.replies : []
        const busy = replies.find(({ code }) => code === 421)
        return busy === undefined ? { _tag: "Done", outcomes } : { _tag: "Next", reply: busy }
      }),
      Effect.catchTags({
        Broken: (error) => Effect.succeed<Tried>({ _tag: "Next", reply: replyOf(error, server) }),
        Unwelcome: (error) => Effect.succeed<Tried>({ _tag: "Next", reply: replyOf(error, server) }),
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
    let left = tries
    let isPrivate = false
    for (const server of servers) {
      if (policy !== undefined && !MtaSts.names(policy, server)) {
        last ??= { ...Outcomes.unheard(`The domain's MTA-STS policy does not name ${server}`, server), status: "4.7.1" }
        continue
      }
      const found = yield* Effect.result(Exchangers.addressesOf(dns, server))
      if (found._tag === "Failure") {
        last = found.failure.reply
        continue
      }
      const owed = isSecure ? yield* Effect.result(dane.owed(server)) : undefined
      if (owed?._tag === "Failure") {
        // Whoever can keep the records from us could be the one that waits for the mail (RFC 7672 section 2.1.1).
        last = {
          ...Outcomes.unheard(`DNS does not say which certificate ${server} has (DANE)`, server),
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
        const tried = yield* tryWith(
          transmission,
          letter,
          destination,
          server,
          address,
          policy === undefined ? "optional" : "required",
          owed?.success,
        )
        if (tried._tag === "Done") {
          destinations.reached(destination)
          return tried.outcomes
        }
        last = tried.reply
      }
    }
    if (last === undefined) {
      const why = isPrivate ? "no mail server with a public address" : "no mail server with an address"
      return Outcomes.refused(transmission, {
        ...Outcomes.unheard(`The domain ${transmission.domain} has ${why}`, null),
        status: "5.4.4",
      })
    }
    destinations.missed(destination, yield* monotonicMillis)
    return Outcomes.deferred(transmission, last)
  })

  const attempt = Effect.fnUntraced(
    function* (transmission: Transmission, destination: Destination) {
      const now = yield* monotonicMillis
      if (destination.until > now) {
        return Outcomes.deferred(
          transmission,
          Outcomes.unheard("None of the domain's servers could be reached a moment ago", null),
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
        destinations.inTurn(
          transmission.domain,
          (destination) => attempt(transmission, destination),
          Effect.succeed(Outcomes.held(transmission)),
        ),
        Timing.sendMillis,
        () =>
          Effect.succeed(Outcomes.deferred(transmission, Outcomes.unheard("The servers did not end in time", null))),
      ),
    ),
  }
})

export const layer = (settings: DirectSettings) => Layer.effect(MailTransport, make(settings))
