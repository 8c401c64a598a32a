/** The certificate that the edge shows. In Development it makes one of its own where it was given none. */
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
    /** What the port shows at first; undefined where it speaks no TLS. */
    shown: current ?? own,
    /** What other edges are known by, where they show what was given. */
    authority: () => current?.cert,
    /** Hands on what was given, each time it is another than before. */
    follow: (renew: (certificate: Certificate) => void) =>
      given === undefined || current === undefined
        ? Effect.void
        : Certificates.follow(given, listener, current, (found) => {
            renew(found)
            current = found
          }),
  }
})
