/** What the listener shows: a certificate that was given, followed through its renewals; self-signed without one. */
import { createSecureContext, type SecureContext } from "node:tls"
import * as Certificates from "@svc/cluster/net/Certificates"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Clock, Effect } from "effect"

/** PEM texts, or the files they are in, which are read again when they change. */
export type Pair = Pick<Certificates.Pem, "cert" | "key">

/** As the certificate's owner, in words to operators. */
const listener = "imap"

const contextOf = ({ cert, key }: Pair) => createSecureContext({ cert, key, minVersion: "TLSv1.2" })

/** Answers the context that a connection of now takes. */
export const make = Effect.fnUntraced(function* (given: Pair | undefined, names: readonly [string, ...Array<string>]) {
  let context: SecureContext
  if (given === undefined) context = contextOf(selfSigned(names, new Date(yield* Clock.currentTimeMillis)))
  else {
    const first = yield* Certificates.read(given, listener)
    context = contextOf(first)
    yield* Certificates.follow(given, listener, first, (renewed) => {
      context = contextOf(renewed)
    })
  }
  return () => context
})
