/**
 * The outgoing transport of this deployment: the relay if there is one, otherwise direct delivery if it is enabled,
 * otherwise (Development) none. The roles of a process share it with its connections.
 */
import { DkimKeys } from "@svc/cluster/mail/dkim/DkimKeys"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import * as BounceAddress from "@svc/mail-gateway/mail/sending/BounceAddress"
import { Letters } from "@svc/mail-gateway/mail/sending/Letters"
import * as Mailer from "@svc/mail-gateway/mail/sending/Mailer"
import * as DkimPublication from "@svc/mail-gateway/mail/sending/DkimPublication"
import { Relay } from "@svc/mail-gateway/mail/sending/Relay"
import * as RelayTransport from "@svc/mail-gateway/mail/sending/RelayTransport"
import { Effect, Layer, Option } from "effect"
import type { Parts } from "../Parts.ts"
import type { Settings } from "../Settings.ts"

/** Loaded on demand, because its dependencies take long to load. */
const direct = async (settings: Settings, parts: Parts, helo: string) => {
  const [{ Dane }, DirectTransport, { MtaSts }] = await Promise.all([
    import("@svc/mail-gateway/mail/sending/dane/Dane"),
    import("@svc/mail-gateway/mail/sending/DirectTransport"),
    import("@svc/mail-gateway/mail/sending/MtaSts"),
  ])
  const dane = Option.match(settings.daneResolver, {
    onNone: () => Dane.none,
    onSome: (resolver) => Dane.layer({ resolver, port: settings.mailDirectPort }),
  })
  return DirectTransport.layer({
    helo,
    ours: [...settings.mailServers, settings.mailDomain],
    port: settings.mailDirectPort,
    allowPrivate: settings.environment === "development",
  }).pipe(Layer.provide([dane, MtaSts.layer.pipe(Layer.provide(parts.resolver)), parts.resolver]))
}

const transport = (settings: Settings, parts: Parts) => {
  const letters = Letters.layer({ mailDomain: settings.mailDomain })
  const helo = settings.mailServers[0] ?? settings.mailDomain
  if (Option.isSome(settings.relay)) {
    const relay = Relay.layer({ server: settings.relay.value, helo })
    return RelayTransport.layer.pipe(Layer.provide([relay, letters]))
  }
  if (settings.mailDirect) {
    return Layer.unwrap(Effect.promise(() => direct(settings, parts, helo))).pipe(Layer.provide(letters))
  }
  return MailTransport.none
}

const mailer = (settings: Settings) =>
  Option.isNone(settings.relay) && !settings.mailDirect
    ? Mailer.withoutRelay({ from: settings.systemFrom })
    : Mailer.layer({
        from: settings.systemFrom,
        arc: Option.getOrUndefined(
          Option.map(settings.arcKey, (key) => ({ key, domain: settings.mailDomain, selector: settings.arcSelector })),
        ),
      })

const publishing = (settings: Settings, parts: Parts) =>
  Option.isNone(settings.relay) && !settings.mailDirect
    ? Layer.empty
    : DkimPublication.layer({ mailDomain: settings.mailDomain }).pipe(Layer.provide(parts.resolver))

export const layer = (settings: Settings, parts: Parts) =>
  Layer.mergeAll(
    mailer(settings),
    BounceAddress.layer({ mailDomain: settings.mailDomain }),
    publishing(settings, parts),
  ).pipe(Layer.provideMerge(transport(settings, parts)), Layer.provide(DkimKeys.layer))

export type Outgoing = ReturnType<typeof layer>
