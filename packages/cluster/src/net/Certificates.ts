/**
 * Certificates of listeners: PEM texts, or the files they are in. Files are read again while the listener stands, so that
 * a renewal needs no restart. What cannot be used is told, and what was shown before is shown on: key and certificate are
 * often written one after the other.
 */
import { createPrivateKey, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createSecureContext } from "node:tls"
import { Effect, Schedule, Schema, type Scope } from "effect"
import { Timing } from "../Timing.ts"

export interface Pem {
  readonly cert: string
  readonly key: string
  /** Authorities that the other end must be signed by. */
  readonly ca?: string
}

/** A certificate or its key cannot be read, or they do not belong together; `message` is for operators. */
export class CertificateUnusable extends Schema.TaggedError<CertificateUnusable>()("CertificateUnusable", {
  message: Schema.String,
}) {}

const text = (given: string) => (given.includes("-----BEGIN") ? Promise.resolve(given) : readFile(given, "utf8"))

const judged = (pem: Pem): Pem => {
  if (!new X509Certificate(pem.cert).checkPrivateKey(createPrivateKey(pem.key))) {
    throw new Error("the key is not the certificate's")
  }
  createSecureContext(pem)
  return pem
}

/** The texts, proven to be a certificate and its key. `listener` says whose they are. */
export const read = (given: Pem, listener: string): Effect.Effect<Pem, CertificateUnusable> =>
  Effect.tryPromise({
    try: async () => {
      const [cert, key] = [await text(given.cert), await text(given.key)]
      return judged({ cert, key, ...(given.ca === undefined ? {} : { ca: await text(given.ca) }) })
    },
    catch: (error) =>
      new CertificateUnusable({
        message: `The certificate of ${listener} cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      }),
  })

const expiries = new Map<string, number>()

/** When the certificate of each listener of this process runs out, in milliseconds. */
export const expiryOf: ReadonlyMap<string, number> = expiries

/** Notes what a listener shows from now on. */
export const shows = (listener: string, { cert }: Pick<Pem, "cert">): void => {
  expiries.set(listener, Date.parse(new X509Certificate(cert).validTo))
}

const same = (one: Pem, other: Pem) => one.cert === other.cert && one.key === other.key && one.ca === other.ca

/** One look: what was given, where it is another than `current`. What cannot be used is told, and is no other. */
export const renewed = (given: Pem, listener: string, current: Pem): Effect.Effect<Pem | undefined> =>
  read(given, listener).pipe(
    Effect.map((found) => (same(found, current) ? undefined : found)),
    Effect.catch((error) => Effect.as(Effect.logError(error.message, { listener }), undefined)),
  )

/** Looks until the scope closes, and hands on each that is another than the one before. */
export const follow = (
  given: Pem,
  listener: string,
  first: Pem,
  renew: (pem: Pem) => void,
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    let current = first
    shows(listener, first)
    return renewed(given, listener, current).pipe(
      Effect.tap((found) =>
        Effect.sync(() => {
          if (found === undefined) return
          renew(found)
          shows(listener, found)
          current = found
        }),
      ),
      Effect.repeat(Schedule.spaced(Timing.certificateLook)),
      Effect.forkScoped,
      Effect.asVoid,
    )
  })
