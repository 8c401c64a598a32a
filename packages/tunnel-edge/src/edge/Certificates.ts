/**
 * The certificate that the edge shows: PEM texts, or the files they are in, which are read again so that a renewal needs
 * no restart. In Development it makes one of its own where it was given none.
 */
import { readFile } from "node:fs/promises"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Addresses } from "@svc/domain/Addresses"
import { Clock, Effect } from "effect"
import type { Hosts } from "./Hosts.ts"
import { type Certificate, EdgeListenFailed } from "./Listener.ts"

const pem = (text: string) => (text.includes("-----BEGIN") ? Promise.resolve(text) : readFile(text, "utf8"))

const read = ({ cert, key }: Certificate): Effect.Effect<Certificate, EdgeListenFailed> =>
  Effect.tryPromise({
    try: async () => ({ cert: await pem(cert), key: await pem(key) }),
    catch: (error) => new EdgeListenFailed({ message: `The edge's certificate cannot be read: ${String(error)}` }),
  })

export const make = Effect.fnUntraced(function* (given: Certificate | undefined, hosts: Hosts) {
  const { environment } = yield* Addresses
  let current = given === undefined ? undefined : yield* read(given)
  const own =
    current === undefined && environment === "development"
      ? selfSigned(hosts.certified, new Date(yield* Clock.currentTimeMillis))
      : undefined

  return {
    /** What the port shows at first; undefined where it speaks no TLS. */
    shown: current ?? own,
    /** What other edges are known by, where they show what was given. */
    authority: () => current?.cert,
    /** Hands on what was given if it is another than before. */
    refresh: (renew: (certificate: Certificate) => void) =>
      Effect.suspend(() =>
        given === undefined
          ? Effect.void
          : Effect.map(read(given), (found) => {
              if (found.cert === current?.cert && found.key === current.key) return
              renew(found)
              current = found
            }),
      ).pipe(Effect.catchCause((cause) => Effect.logWarning("The edge's certificate was not renewed", cause))),
  }
})
