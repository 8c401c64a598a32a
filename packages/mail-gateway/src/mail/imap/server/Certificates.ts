/** The certificate of the listener: the configured one, reloaded after each renewal, or a self-signed one. */
import { createSecureContext, type SecureContext } from "node:tls"
import * as Certificates from "@svc/cluster/net/Certificates"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Clock, Effect } from "effect"

/** PEM texts, or files with them, which are reloaded when they change. */
export type Pair = Pick<Certificates.Pem, "cert" | "key">

/** The name of the certificate's owner in log entries. */
const listener = "imap"

const contextOf = ({ cert, key }: Pair) => createSecureContext({ cert, key, minVersion: "TLSv1.2" })

/** Returns a function that returns the current TLS context. */
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
