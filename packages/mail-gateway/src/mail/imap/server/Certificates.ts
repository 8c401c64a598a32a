/** The certificate of a listener: PEM texts, or files that are read again when they change; self-signed without any. */
import * as fs from "node:fs"
import { createSecureContext, type SecureContext } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Clock, Effect } from "effect"
import { Timing } from "../../../Timing.ts"

export interface Pair {
  readonly cert: string
  readonly key: string
}

const isText = (value: string) => value.includes("-----BEGIN")

const read = ({ cert, key }: Pair): Pair => ({
  cert: isText(cert) ? cert : fs.readFileSync(cert, "utf8"),
  key: isText(key) ? key : fs.readFileSync(key, "utf8"),
})

const contextOf = (pair: Pair) => createSecureContext({ ...pair, minVersion: "TLSv1.2" })

/** Answers the context that a connection of now takes. What cannot be read again leaves the one before. */
export const make = Effect.fnUntraced(function* (pair: Pair | undefined, names: readonly [string, ...Array<string>]) {
  const own = pair ?? selfSigned(names, new Date(yield* Clock.currentTimeMillis))
  let held = read(own)
  let context: SecureContext = contextOf(held)
  const look = Effect.try({ try: () => read(own), catch: (error) => error }).pipe(
    Effect.flatMap((now) =>
      Effect.try({
        try: () => {
          if (now.cert === held.cert && now.key === held.key) return
          context = contextOf(now)
          held = now
        },
        catch: (error) => error,
      }),
    ),
    Effect.catch((error) => Effect.logWarning("A certificate could not be read again", String(error))),
  )
  if (!isText(own.cert) || !isText(own.key)) {
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.certificateLookMillis), look)))
  }
  return () => context
})
