/**
 * Loads the certificate of the edge and follows its renewals. In Development, a missing certificate is replaced by a
 * self-signed one.
 */
import * as Certificates from "@svc/cluster/net/Certificates"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Addresses } from "@svc/domain/Addresses"
import { Clock, Effect } from "effect"
import type { Hosts } from "../routing/Hosts.ts"
import type { Certificate } from "./Listener.ts"

const listener = "edge"

export const make = Effect.fnUntraced(function* (given: Certificate | undefined, hosts: Hosts) {
  const { environment } = yield* Addresses
  let current = given === undefined ? undefined : yield* Certificates.read(given, listener)
  const own =
    current === undefined && environment === "development"
      ? selfSigned(hosts.certified, new Date(yield* Clock.currentTimeMillis))
      : undefined

  return {
    /** The initial certificate; undefined if the port does not use TLS. */
    shown: current ?? own,
    /** Returns the certificate that other edges are verified against, if one is configured. */
    authority: () => current?.cert,
    /** Calls `renew` whenever the configured certificate changes. */
    follow: (renew: (certificate: Certificate) => void) =>
      given === undefined || current === undefined
        ? Effect.void
        : Certificates.follow(given, listener, current, (found) => {
            renew(found)
            current = found
          }),
  }
})
