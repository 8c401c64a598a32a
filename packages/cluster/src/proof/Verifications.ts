/**
 * Verifies proofs of agents of this and of other services: identity tokens (OpenID Connect), signed A2A cards, and signed
 * requests. The keys of others are read with the guarded client, at most 64 KiB each, and cached for a minute to a day.
 */
import { Addresses, jwksUrl, tunnelUrl } from "@svc/domain/Addresses"
import { signables } from "@svc/domain/card/CardSignature"
import { canonical } from "@svc/domain/handles/Handle"
import { signatureSeconds } from "@svc/domain/proof/RequestSignature"
import type { NewVerification, Verification, VerificationReason } from "@svc/domain/proof/Verification"
import type { createLocalJWKSet } from "jose"
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import { AgentKeys } from "./AgentKeys.ts"
import { NotVerified, verifyRequest } from "./AgentRequests.ts"
import { jwkSet } from "./DidDocument.ts"
import * as ForeignDocuments from "./ForeignDocuments.ts"
import { IssuerKeys } from "./IssuerKeys.ts"
import { canonicalize, jose } from "./Libraries.ts"
import { SigningKeys } from "./SigningKeys.ts"

class Invalid extends Schema.TaggedError<Invalid>()("Invalid", {
  reason: Schema.String,
  detail: Schema.String,
}) {}
const invalid = (reason: VerificationReason, detail: string) => new Invalid({ reason, detail })

type Proved = Pick<Verification, "agent" | "kid" | "expires_at">

/** Returns the reason for which the library refuses a token or a card. */
const reasonOf = (code: string): VerificationReason =>
  code === "ERR_JWT_EXPIRED"
    ? "expired"
    : code === "ERR_JWKS_NO_MATCHING_KEY"
      ? "unknown_key"
      : code === "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"
        ? "altered"
        : "malformed"

const make = Effect.gen(function* () {
  const book = yield* Addresses
  const agentKeys = yield* AgentKeys
  const issuerKeys = yield* IssuerKeys
  const signingKeys = yield* SigningKeys
  const schemes = book.environment === "development" ? ["https:", "http:"] : ["https:"]

  const read = yield* ForeignDocuments.make
  const documentAt = (address: string, reader: string) =>
    Effect.mapError(read(address, reader), ({ message }) => invalid("unreadable_keys", message))

  const addressOf = (text: unknown, what: string) => {
    const url = typeof text === "string" ? URL.parse(text) : null
    return url !== null && schemes.includes(url.protocol)
      ? Effect.succeed(url.href)
      : Effect.fail(invalid("malformed", `${what} is not an https address.`))
  }

  const unreadable = Effect.mapError(() => invalid("unreadable_keys", "The keys could not be read. Try again."))

  /** Runs a check of the library with a set of keys. */
  const checked = <A>(keys: unknown, check: (jwks: ReturnType<typeof createLocalJWKSet>) => Promise<A>) =>
    Effect.flatMap(Effect.promise(jose), ({ createLocalJWKSet, errors }) =>
      Effect.tryPromise({
        // The library validates the set.
        try: async () => check(createLocalJWKSet(keys as never)),
        catch: (error) =>
          error instanceof errors.JWTClaimValidationFailed && error.claim === "aud"
            ? invalid("other_audience", "The token is for another audience.")
            : error instanceof errors.JOSEError
              ? invalid(reasonOf(error.code), `${error.message}.`)
              : invalid("malformed", "The keys or the signature cannot be read."),
      }),
    )

  const token = Effect.fnUntraced(function* (text: string, audience: string | undefined, reader: string, now: Date) {
    const { decodeJwt, jwtVerify } = yield* Effect.promise(jose)
    const claims = yield* Effect.try({
      try: () => decodeJwt(text),
      catch: () => invalid("malformed", "This is not a token (JWT)."),
    })
    const issuer = typeof claims.iss === "string" ? claims.iss : ""
    const isOurs = issuer === book.baseUrl
    let keys: unknown
    if (isOurs) keys = { keys: yield* unreadable(issuerKeys.published) }
    else {
      yield* addressOf(issuer, "The issuer (`iss`)")
      const discovery = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`
      const json = yield* documentAt(discovery, reader)
      if (json["issuer"] !== issuer) {
        return yield* invalid("other_address", `${discovery} describes another issuer.`)
      }
      keys = yield* documentAt(yield* addressOf(json["jwks_uri"], "`jwks_uri`"), reader)
    }
    const { payload, protectedHeader } = yield* checked(keys, (jwks) =>
      jwtVerify(text, jwks, {
        issuer,
        ...(audience === undefined ? {} : { audience }),
        algorithms: ["RS256", "ES256", "EdDSA", "Ed25519", "PS256"],
        requiredClaims: ["exp", "sub"],
        currentDate: now,
      }),
    )
    const handle = isOurs && typeof payload["handle"] === "string" ? payload["handle"] : null
    if (handle !== null && (yield* unreadable(signingKeys.published(canonical(handle)))) === undefined) {
      return yield* invalid("identity_ended", "The Identity does not exist any more.")
    }
    const proved: Proved = {
      agent: { issuer, subject: payload.sub!, handle },
      kid: protectedHeader.kid ?? null,
      expires_at: new Date(payload.exp! * 1000),
    }
    return proved
  })

  /** Returns the set of keys at the address, and the Handle if it is of an Identity of this service. */
  const keysAt = Effect.fnUntraced(function* (address: string, reader: string) {
    const handle = /\/@([A-Za-z0-9-]+)\/jwks\.json$/.exec(address)?.[1]
    if (handle === undefined || jwksUrl(book, handle) !== address) {
      return { keys: yield* documentAt(address, reader), handle: null }
    }
    const published = yield* unreadable(signingKeys.published(canonical(handle)))
    if (published === undefined) return yield* invalid("identity_ended", "The Identity does not exist any more.")
    return { keys: jwkSet(published), handle: published.handle }
  })

  const card = Effect.fnUntraced(function* (
    given: Readonly<Record<string, unknown>>,
    readFrom: string | undefined,
    reader: string,
  ) {
    const { flattenedVerify, decodeProtectedHeader } = yield* Effect.promise(jose)
    const canonicalJson = yield* Effect.promise(canonicalize)
    const { signatures, ...document } = given
    const [first] = Array.isArray(signatures) ? signatures : []
    if (!ForeignDocuments.isObject(first)) return yield* invalid("unsigned", "The card has no `signatures`.")
    const payloads = signables(document).map((form) => Buffer.from(canonicalJson(form)!).toString("base64url"))
    let failure = invalid("malformed", "The card has no readable signature.")
    for (const signature of (signatures as ReadonlyArray<unknown>).slice(0, 5)) {
      if (!ForeignDocuments.isObject(signature)) continue
      const header = yield* Effect.option(Effect.try(() => decodeProtectedHeader(signature as never)))
      if (header._tag === "None") continue
      const jku = yield* addressOf(header.value["jku"], "`jku` of the signature")
      const { keys, handle } = yield* keysAt(jku, reader)
      for (const payload of new Set(payloads)) {
        const found = yield* Effect.result(
          checked(keys, (jwks) => flattenedVerify({ ...(signature as { signature: string }), payload }, jwks)),
        )
        if (Result.isFailure(found)) {
          failure = found.failure
          continue
        }
        yield* isFrom(document, jku, handle, readFrom)
        const proved: Proved = {
          agent: { issuer: jku, subject: null, handle },
          kid: header.value.kid ?? null,
          expires_at: null,
        }
        return proved
      }
    }
    return yield* failure
  })

  /** Fails if the card was read from an address that belongs neither to its keys nor to the agent that it describes. */
  const isFrom = Effect.fnUntraced(function* (
    document: Readonly<Record<string, unknown>>,
    jku: string,
    handle: string | null,
    readFrom: string | undefined,
  ) {
    if (readFrom === undefined) return
    const url = new URL(yield* addressOf(readFrom, "`card_url`"))
    const interfaces = Array.isArray(document["supportedInterfaces"]) ? document["supportedInterfaces"] : []
    const origins = interfaces.flatMap((one) =>
      ForeignDocuments.isObject(one) && typeof one["url"] === "string" ? [one["url"]] : [],
    )
    const own = handle === null ? [] : [tunnelUrl(book, handle)]
    // Addresses of one host may belong to different agents, so the folder counts beside the keys.
    const isBeside = url.href.slice(0, url.href.lastIndexOf("/")) === jku.slice(0, jku.lastIndexOf("/"))
    const isOfAgent = [...own, ...origins].some(
      (text) => URL.parse(text)?.origin === url.origin && url.pathname.startsWith("/.well-known/"),
    )
    if (isBeside || isOfAgent) return
    return yield* invalid("other_address", `The card is signed by the keys at ${jku}, not by those of ${readFrom}.`)
  })

  const request = Effect.fnUntraced(function* (
    { method, url, headers }: NonNullable<NewVerification["request"]>,
    reader: string,
    now: Date,
  ) {
    let handle: string | null = null
    const context = yield* Effect.context<never>()
    const fields = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    const { origin, kid, created } = yield* Effect.tryPromise({
      try: () =>
        verifyRequest(
          { method, url, headers: fields },
          {
            now: Math.floor(now.getTime() / 1000),
            schemes,
            keyOf: async (origin, kid) => {
              const found = await Effect.runPromiseWith(context)(Effect.result(agentKeys.find(origin, kid, reader)))
              if (Result.isFailure(found)) throw new NotVerified("unreadable_keys", found.failure.message)
              handle = found.success.handle ?? null
              return found.success.keys.get(kid)
            },
          },
        ),
      catch: (error) =>
        error instanceof NotVerified
          ? invalid(error.reason, error.message)
          : invalid("malformed", "The signature cannot be read."),
    })
    const proved: Proved = {
      agent: { issuer: origin, subject: null, handle },
      kid,
      expires_at: new Date((created + signatureSeconds) * 1000),
    }
    return proved
  })

  return {
    /** Verifies the one proof that is given. `reader` limits how many documents are read for one account. */
    verify: Effect.fn("Verifications.verify")(function* (given: NewVerification, reader: string) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const proved =
        given.token !== undefined
          ? token(given.token, given.audience, reader, now)
          : given.card !== undefined
            ? card(given.card, given.card_url, reader)
            : request(given.request!, reader, now)
      return yield* Effect.match(proved, {
        onSuccess: (proved): Verification => ({ valid: true, ...proved, reason: null, detail: null }),
        onFailure: ({ reason, detail }): Verification => ({
          valid: false,
          agent: null,
          kid: null,
          reason: reason as VerificationReason,
          detail,
          expires_at: null,
        }),
      })
    }),
  }
})

export class Verifications extends Context.Service<Verifications, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/Verifications",
) {
  static readonly layer = Layer.effect(Verifications, make).pipe(
    Layer.provide([AgentKeys.layer, IssuerKeys.layer, SigningKeys.layer]),
  )
}
