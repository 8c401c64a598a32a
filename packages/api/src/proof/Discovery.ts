/**
 * Discovery for strangers: the keys of identity tokens, WebFinger (RFC 7033) for Identities, and `security.txt` (RFC
 * 9116). The OpenID configuration is in `oauth/Metadata.ts`, because it describes the same server as the OAuth metadata.
 */
import { Addresses, type AddressBook, cardUrl, did, didUrl, email, profileUrl } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"
import { NotFound, InvalidRequest } from "@svc/domain/problems/Problem"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { IssuerKeys } from "@svc/cluster/proof/IssuerKeys"
import { Clock, Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { limited } from "../limits/PublicLimit.ts"
import { render } from "../problems/Render.ts"
import { RequestId } from "../RequestContext.ts"

const dayMillis = 86_400_000
/** `security.txt` expires at the start of a day within the next half year; RFC 9116 recommends less than a year. */
const securityDays = 180

const cors = { "access-control-allow-origin": "*" }

/**
 * Returns the Handle that a WebFinger resource names: `acct:ada@mail.example`, `mailto:`, the profile's address or the
 * DID.
 */
export const handleOf = (book: AddressBook, resource: string): string | undefined => {
  const account = /^(?:acct|mailto):@?([^@]+)@([^@]+)$/i.exec(resource)
  if (account !== null) {
    const host = account[2]!.toLowerCase()
    const ours = [book.mailDomain, new URL(book.profileBase).host]
    return ours.includes(host) ? account[1] : undefined
  }
  for (const prefix of [`${book.profileBase}/@`, did(book, "")]) {
    if (resource.startsWith(prefix)) return resource.slice(prefix.length).replace(/\/$/, "")
  }
  return undefined
}

/** The document of a resource (section 4.4), with the links of the given relations only. */
const descriptor = (book: AddressBook, resource: string, handle: string, relations: ReadonlyArray<string>) => ({
  subject: resource,
  aliases: [`acct:${email(book, handle)}`, profileUrl(book, handle), did(book, handle)].filter(
    (alias) => alias !== resource,
  ),
  links: [
    { rel: "http://webfinger.net/rel/profile-page", type: "text/html", href: profileUrl(book, handle) },
    { rel: "self", type: "application/did+json", href: didUrl(book, handle) },
    { rel: "describedby", type: "application/json", href: cardUrl(book, handle) },
    { rel: "http://openid.net/specs/connect/1.0/issuer", href: book.baseUrl },
  ].filter(({ rel }) => relations.length === 0 || relations.includes(rel)),
})

const securityText = (book: AddressBook, now: number) => {
  const expires = new Date((Math.floor(now / dayMillis) + securityDays) * dayMillis)
  return [
    `Contact: mailto:abuse@${book.mailDomain}`,
    `Expires: ${expires.toISOString().replace(".000Z", "Z")}`,
    "Preferred-Languages: en, de, fr",
    `Canonical: ${book.baseUrl}/.well-known/security.txt`,
    "",
  ].join("\n")
}

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const cards = yield* CardQueries
    const limits = yield* PublicLimits
    const issuerKeys = yield* IssuerKeys

    yield* router.add(
      "GET",
      "/.well-known/jwks.json",
      Effect.map(issuerKeys.published, (keys) =>
        HttpServerResponse.text(JSON.stringify({ keys }), {
          contentType: "application/jwk-set+json",
          // Shorter than the day for which a key is published before it signs.
          headers: { "cache-control": "public, max-age=3600", ...cors },
        }),
      ).pipe(Effect.catchTag("unavailable", (problem) => Effect.map(RequestId, (id) => render(book, id, problem)))),
    )

    yield* router.add(
      "GET",
      "/.well-known/webfinger",
      Effect.gen(function* () {
        yield* limited(limits, "profile")
        const query = new URL((yield* HttpServerRequest.HttpServerRequest).url, book.baseUrl).searchParams
        const [resource, ...others] = query.getAll("resource")
        if (resource === undefined || others.length > 0 || !/^[a-z][a-z0-9+.-]*:./i.test(resource)) {
          return yield* new InvalidRequest({
            detail: "The query needs one `resource`, such as `acct:ada@mail.example`.",
            errors: [{ path: "/resource", message: "expected one URI" }],
          })
        }
        const named = handleOf(book, resource)
        if (named === undefined) return yield* new NotFound({ detail: "The resource is not an Identity." })
        const { profile } = yield* cards.profile(canonical(named))
        return HttpServerResponse.text(
          JSON.stringify(descriptor(book, resource, profile.handle, query.getAll("rel"))),
          {
            contentType: "application/jrd+json",
            headers: { "cache-control": "public, max-age=0, must-revalidate" },
          },
        )
      }).pipe(
        Effect.catch((problem) => Effect.map(RequestId, (id) => render(book, id, problem))),
        Effect.map((response) => HttpServerResponse.setHeaders(response, cors)),
      ),
    )

    yield* router.add(
      "GET",
      "/.well-known/security.txt",
      Effect.map(Clock.currentTimeMillis, (now) =>
        HttpServerResponse.text(securityText(book, now), {
          contentType: "text/plain; charset=utf-8",
          headers: { "cache-control": "public, max-age=3600" },
        }),
      ),
    )
  }),
)
