/**
 * An ARC set (RFC 8617) for mail that is handed on: what we found when it came in, sealed, so that whoever gets it from our
 * relay can still tell who sent it.
 */
import { Effect, Redacted } from "effect"

export interface ArcSettings {
  /** The signing domain; its `<selector>._domainkey` record holds the public key. */
  readonly domain: string
  readonly selector: string
  /** A private key (RSA or Ed25519) in PEM. */
  readonly key: Redacted.Redacted<string>
}

/** The results that we put on top of the message when it came in, without the name of the field. */
const ownResults = (raw: Uint8Array, domain: string): string | undefined => {
  const end = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).indexOf("\r\n\r\n")
  const head = Buffer.from(raw.subarray(0, end < 0 ? raw.length : end)).toString("latin1")
  const field = head
    .split(/\r\n(?![ \t])/)
    .find((one) => /^authentication-results:/i.test(one))
    ?.replace(/^[^:]*:\s*/, "")
  return field?.toLowerCase().startsWith(`${domain.toLowerCase()};`) === true ? field : undefined
}

/** That the seals there are stand: said right behind what DMARC came to, before anything that quotes the sender. */
const passed = /^[^;]*;\s+dmarc=[^;]*;\s+arc=pass\b/i

/** The message with a set on top; as it is where we have found nothing, or a set cannot be made. */
export const seal = Effect.fn("ArcSeal.seal")(function* (raw: Uint8Array, settings: ArcSettings) {
  const results = ownResults(raw, settings.domain)
  if (results === undefined) return raw
  const cv = passed.test(results) ? "pass" : undefined
  return yield* Effect.tryPromise(async () => {
    // Loaded with the first message that is sealed: it is much, and most processes seal none.
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
      Effect.as(Effect.logWarning("A message was handed on without an ARC seal", cause), raw),
    ),
  )
})
