/**
 * Certificates of listeners: PEM texts or files. Files are read again periodically, so that a renewal needs no restart. An
 * unusable certificate is logged and the previous one stays in use, because key and certificate are often written one
 * after the other.
 */
import { createPrivateKey, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createSecureContext } from "node:tls"
import { Effect, Schedule, Schema, type Scope } from "effect"
import { Timing } from "../Timing.ts"

export interface Pem {
  readonly cert: string
  readonly key: string
  /** Certificate authorities for client certificates. */
  readonly ca?: string
}

/** A certificate or its key cannot be read, or they do not belong together; `message` is for operators. */
class CertificateUnusable extends Schema.TaggedError<CertificateUnusable>()("CertificateUnusable", {
  message: Schema.String,
}) {}

const text = (given: string) => (given.includes("-----BEGIN") ? Promise.resolve(given) : readFile(given, "utf8"))

const validated = (pem: Pem): Pem => {
  if (!new X509Certificate(pem.cert).checkPrivateKey(createPrivateKey(pem.key))) {
    throw new Error("the key does not belong to the certificate")
  }
  createSecureContext(pem)
  return pem
}

/** Reads a certificate and its key, and checks that they belong together. `listener` appears in errors. */
export const read = (given: Pem, listener: string): Effect.Effect<Pem, CertificateUnusable> =>
  Effect.tryPromise({
    try: async () => {
      const [cert, key] = [await text(given.cert), await text(given.key)]
      return validated({ cert, key, ...(given.ca === undefined ? {} : { ca: await text(given.ca) }) })
    },
    catch: (error) =>
      new CertificateUnusable({
        message: `The certificate of ${listener} cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      }),
  })

const expiries = new Map<string, number>()

/** Expiry of the certificate of each listener in this process, in milliseconds since 1970. */
export const expiryOf: ReadonlyMap<string, number> = expiries

/** Records the expiry of a listener's current certificate. */
const recordExpiry = (listener: string, { cert }: Pick<Pem, "cert">): void => {
  expiries.set(listener, Date.parse(new X509Certificate(cert).validTo))
}

const same = (a: Pem, b: Pem) => a.cert === b.cert && a.key === b.key && a.ca === b.ca

/** Reads the certificate again. Returns it if it has changed; an unusable one is only logged. */
export const renewed = (given: Pem, listener: string, current: Pem): Effect.Effect<Pem | undefined> =>
  read(given, listener).pipe(
    Effect.map((found) => (same(found, current) ? undefined : found)),
    Effect.catch((error) => Effect.as(Effect.logError(error.message, { listener }), undefined)),
  )

/** Checks for a new certificate until the scope closes, and passes each one to `renew`. */
export const follow = (
  given: Pem,
  listener: string,
  first: Pem,
  renew: (pem: Pem) => void,
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    let current = first
    recordExpiry(listener, first)
    return renewed(given, listener, current).pipe(
      Effect.tap((found) =>
        Effect.sync(() => {
          if (found === undefined) return
          renew(found)
          recordExpiry(listener, found)
          current = found
        }),
      ),
      Effect.repeat(Schedule.spaced(Timing.certificateLook)),
      Effect.forkScoped,
      Effect.asVoid,
    )
  })
