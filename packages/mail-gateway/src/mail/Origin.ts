/**
 * Whether the domain of `From` really sent a message: SPF, DKIM and DMARC judged over the bytes as received
 * (RFC 7208, RFC 6376, RFC 7489), and what follows from them (decisions.md "Resources", mail.md "Origin verdict").
 */
import type { OriginVerdict } from "@svc/domain/mail/Message"
import { Effect } from "effect"
import { authenticate, type AuthenticateResult } from "mailauth"
import { Resolver } from "./Resolver.ts"
import { Timing } from "../Timing.ts"

/** The SMTP session a message arrived by. */
export interface Arrival {
  readonly ip: string
  readonly helo: string
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string
  /** Our own host name, which signs the `Authentication-Results`. */
  readonly host: string
}

export interface Judged {
  readonly origin: OriginVerdict
  /** The `Authentication-Results` field to put on top, without its line break; null when nothing could be judged. */
  readonly header: string | null
}

const undecided = (verdict: "error" | "failed", domain: string | null): Judged => ({
  origin: { verdict, spf: "none", dkim: "none", dmarc: "none", domain },
  header: null,
})

/** What of RFC 8601's result words a list of signatures comes to: one that passes outweighs the rest. */
const dkimWord = (result: AuthenticateResult): string => {
  const words = (result.dkim.results ?? []).map(({ status }) => word(status.result))
  return (
    words.find((one) => one === "pass") ??
    words.find((one) => one === "temperror") ??
    words.find((one) => one !== "none") ??
    "none"
  )
}

const word = (result: string): string => (result === "temperr" ? "temperror" : result)

/** SPF of the envelope's domain counts for `From` only where the two belong together (RFC 7489 section 3.1.2, relaxed). */
const organisational = (a: string, b: string) => a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`)

const verdict = (result: AuthenticateResult): OriginVerdict => {
  const spf = result.spf === false ? "none" : word(result.spf.status.result)
  const dkim = dkimWord(result)
  const dmarc = result.dmarc === false ? "none" : word(result.dmarc.status.result)
  const domain = result.dmarc === false ? null : (domainOf(result) ?? null)
  const words = { spf, dkim, dmarc, domain }
  // No author, or several: nobody can vouch for that, so it is never merely unknown.
  if (result.dmarc === false) return { verdict: "failed", ...words }
  if (dmarc === "pass") return { verdict: "verified", ...words }
  if (dmarc === "temperror") return { verdict: "error", ...words }
  if (dmarc !== "none") return { verdict: "failed", ...words }
  const signed = (result.dkim.results ?? []).some(
    ({ status, signingDomain }) =>
      status.result === "pass" &&
      (status.aligned || (domain !== null && signingDomain !== undefined && organisational(signingDomain, domain))),
  )
  const sender = result.spf === false ? undefined : (result.spf as { domain?: string }).domain
  const sent = spf === "pass" && domain !== null && sender !== undefined && organisational(sender.toLowerCase(), domain)
  if (signed || sent) return { verdict: "verified", ...words }
  return { verdict: spf === "temperror" || dkim === "temperror" ? "error" : "unverified", ...words }
}

const domainOf = (result: AuthenticateResult): string | undefined => {
  const from: unknown = result.dmarc === false ? undefined : result.dmarc.status.header?.["from"]
  return typeof from === "string" ? from.toLowerCase() : undefined
}

const authenticationResults = (headers: string): string | null => {
  const at = headers.search(/^Authentication-Results:/im)
  return at < 0 ? null : headers.slice(at).trimEnd()
}

export const judge = Effect.fn("Origin.judge")(function* (raw: Buffer, arrival: Arrival) {
  const resolver = yield* Resolver
  const context = yield* Effect.context<never>()
  return yield* Effect.tryPromise((signal) =>
    authenticate(raw, {
      ip: arrival.ip,
      helo: arrival.helo,
      sender: arrival.mailFrom,
      mta: arrival.host,
      disableBimi: true,
      resolver: (name, type) =>
        Effect.runPromiseWith(context)(
          resolver.lookup(name, type).pipe(
            Effect.map((records) => records as Array<string> | Array<Array<string>>),
            // The library reads node's error codes.
            Effect.catchTag("LookupFailed", ({ code }) => Effect.die(Object.assign(new Error(code), { code }))),
          ),
          { signal },
        ),
    }),
  ).pipe(
    Effect.map((result): Judged => ({ origin: verdict(result), header: authenticationResults(result.headers) })),
    Effect.timeout(Timing.verdict),
    Effect.catchCause((cause) =>
      Effect.as(Effect.logWarning("A message's origin could not be judged", cause), undecided("error", null)),
    ),
  )
})
