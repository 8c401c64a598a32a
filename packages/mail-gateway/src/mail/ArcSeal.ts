/**
 * Adds an ARC set (RFC 8617) to forwarded mail: the authentication results of its arrival, sealed, so that later
 * receivers can still verify the original sender.
 */
import { Effect, Redacted } from "effect"

export interface ArcSettings {
  /** The signing domain. The record `<selector>._domainkey` holds the public key. */
  readonly domain: string
  readonly selector: string
  /** A private key (RSA or Ed25519) in PEM. */
  readonly key: Redacted.Redacted<string>
}

/** Returns the value of the `Authentication-Results` field that was added at arrival. */
const ownResults = (raw: Uint8Array, domain: string): string | undefined => {
  const end = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).indexOf("\r\n\r\n")
  const head = Buffer.from(raw.subarray(0, end < 0 ? raw.length : end)).toString("latin1")
  const field = head
    .split(/\r\n(?![ \t])/)
    .find((one) => /^authentication-results:/i.test(one))
    ?.replace(/^[^:]*:\s*/, "")
  return field?.toLowerCase().startsWith(`${domain.toLowerCase()};`) === true ? field : undefined
}

/**
 * Matches results in which the existing seals are valid. They directly follow the DMARC result, before anything that
 * quotes the sender.
 */
const hasValidSeals = /^[^;]*;\s+dmarc=[^;]*;\s+arc=pass\b/i

/** Returns the message with an ARC set on top, or unchanged if it has no results or cannot be sealed. */
export const seal = Effect.fn("ArcSeal.seal")(function* (raw: Uint8Array, settings: ArcSettings) {
  const results = ownResults(raw, settings.domain)
  if (results === undefined) return raw
  const cv = hasValidSeals.test(results) ? "pass" : undefined
  return yield* Effect.tryPromise(async () => {
    // Loaded with the first message to seal, since the library is large and most processes seal none.
    const { sealMessage } = await import("mailauth")
    const set = await sealMessage(Buffer.from(raw), {
      signingDomain: settings.domain,
      selector: settings.selector,
      privateKey: Redacted.value(settings.key),
      authResults: results,
      ...(cv === undefined ? {} : { cv }),
    })
    return new Uint8Array(Buffer.concat([set, raw]))
  }).pipe(
    Effect.catchCause((cause) =>
      Effect.as(Effect.logWarning("A message was forwarded without an ARC seal", cause), raw),
    ),
  )
})
