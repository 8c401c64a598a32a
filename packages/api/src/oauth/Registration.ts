/**
 * `POST /api/oauth/register`: dynamic registration of clients without a metadata document (RFC 7591). All clients are
 * public.
 */
import { Addresses } from "@svc/domain/Addresses"
import { readRegistration } from "@svc/domain/oauth/Client"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect, Result } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { limited } from "../limits/PublicLimit.ts"
import { answer, patience, refusal } from "./OAuthResponses.ts"

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const clients = yield* OAuthClients
    const limits = yield* PublicLimits

    const register = Effect.gen(function* () {
      yield* limited(limits, "oauth_register")
      const request = yield* HttpServerRequest.HttpServerRequest
      if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) {
        return refusal("invalid_client_metadata", "The body is application/json.")
      }
      const said = readRegistration(book, parse(yield* request.text))
      if (Result.isFailure(said)) return refusal(said.failure.error, said.failure.description)
      const { id, issuedAt } = yield* clients.register(said.success)
      return answer(
        {
          client_id: id,
          client_id_issued_at: Math.floor(issuedAt.getTime() / 1000),
          client_name: said.success.name,
          redirect_uris: said.success.redirects,
          ...(said.success.idTokenAlgorithm === null
            ? {}
            : { id_token_signed_response_alg: said.success.idTokenAlgorithm }),
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
          // The registered values replace the requested ones (RFC 7591 section 3.2.1): there are no client secrets.
          token_endpoint_auth_method: "none",
        },
        201,
      )
    })

    yield* router.add(
      "POST",
      "/api/oauth/register",
      register.pipe(
        Effect.catchTags({
          ...patience,
          HttpServerError: () => Effect.succeed(refusal("invalid_client_metadata", "The body could not be read.")),
        }),
      ),
    )
  }),
)
