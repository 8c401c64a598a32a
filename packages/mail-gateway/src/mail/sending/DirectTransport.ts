/**
 * Mail straight to the servers of its domain (`SVC_MAIL_DIRECT`): one server after the other until one answers, each over
 * TLS where it offers it, and over checked TLS only where the domain's MTA-STS policy wants that. Only public addresses
 * are connected to, outside Development, and none of our own. Once a server may have the content no other one gets it.
 *
 * DANE (RFC 7672) is left out: it stands on answers that a validating resolver has authenticated, and Node's resolver does
 * not say which are.
 */
import { networkInterfaces } from "node:os"
import { isPublic } from "@svc/cluster/net/AddressGuard"
import { MailTransport, type Outcome, type SmtpReply, type Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { within } from "@svc/cluster/store/Deadline"
import { Clock, Effect, Layer } from "effect"
import type { MTASTSPolicy } from "mailauth"
import { Timing } from "../../Timing.ts"
import { Resolver } from "../Resolver.ts"
import * as Destinations from "./Destinations.ts"
import * as Exchangers from "./Exchangers.ts"
import { Letters } from "./Letters.ts"
import * as MtaSts from "./MtaSts.ts"
import * as Outcomes from "./Outcomes.ts"
import { begin, type Letter, replyOf, type Terms } from "./smtp/Conversation.ts"

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

const make = Effect.fnUntraced(function* (settings: DirectSettings) {
  const resolver = yield* Resolver
  const letters = yield* Letters
  const policies = yield* MtaSts.MtaSts
  const ours = new Set([settings.helo, ...settings.ours].map((name) => name.toLowerCase()))
  const destinations = yield* Effect.acquireRelease(Effect.sync(Destinations.make), (all) => Effect.sync(all.close))

  const mayConnect = (address: string) => settings.allowPrivate || (isPublic(address) && !ownAddresses().has(address))

  /** With these terms to this address; where TLS was a kindness and fails, once more without it. */
  const tryWith = (
    transmission: Transmission,
    letter: Letter,
    destination: Destination,
    server: string,
    address: string,
    tls: Terms["tls"],
  ): Effect.Effect<Tried> => {
    const terms = { name: server, helo: settings.helo, tls, ca: settings.ca }
    const pool = destinations.pool(
      destination,
      `${server} ${address} ${tls}`,
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
        Unwelcome: (error) =>
          tls === "optional" && error.stage === "tls"
            ? tryWith(transmission, letter, destination, server, address, "none")
            : Effect.succeed<Tried>({ _tag: "Next", reply: replyOf(error, server) }),
      }),
    )
  }

  const through = Effect.fnUntraced(function* (
    transmission: Transmission,
    letter: Letter,
    destination: Destination,
    policy: MTASTSPolicy | undefined,
  ) {
    const servers = yield* Exchangers.find(resolver, transmission.domain, ours)
    let last: SmtpReply | undefined
    let left = tries
    let isPrivate = false
    for (const server of servers) {
      if (policy !== undefined && !MtaSts.names(policy, server)) {
        last ??= { ...Outcomes.unheard(`The domain's MTA-STS policy does not name ${server}`, server), status: "4.7.1" }
        continue
      }
      const found = yield* Effect.result(Exchangers.addressesOf(resolver, server))
      if (found._tag === "Failure") {
        last = found.failure.reply
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
    destinations.missed(destination, yield* Clock.currentTimeMillis)
    return Outcomes.deferred(transmission, last)
  })

  const attempt = Effect.fnUntraced(
    function* (transmission: Transmission, destination: Destination) {
      const now = yield* Clock.currentTimeMillis
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
