/** Sign-up and sign-in. */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { type Language, languages } from "@svc/domain/account/Account"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Postman } from "@svc/cluster/account/Postman"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { limited } from "../limits/PublicLimit.ts"
import { magicLinkLetter } from "./MagicLinkLetter.ts"

/** The first of `Accept-Language` that we have, else English. */
const spoken = (header: string | undefined): Language => {
  const wanted = (header ?? "").split(",").map((range) => range.trim().slice(0, 2).toLowerCase())
  return wanted.flatMap((tag) => languages.filter((language) => language === tag))[0] ?? "en"
}

export const layer = HttpApiBuilder.group(
  Api,
  "sign_in",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const postman = yield* Postman
    const book = yield* Addresses
    const limits = yield* PublicLimits

    return handlers.handleAll({
      registration: () => Effect.succeed({ state: accounts.registration }),
      requestMagicLink: Effect.fnUntraced(function* ({ payload, request }) {
        yield* limited(limits, "magic_link")
        const issued = yield* accounts.requestLink(payload, spoken(request.headers["accept-language"]))
        const link = issued.token === null ? null : `${book.baseUrl}/auth/magic-link?token=${issued.token}`
        if (link !== null) {
          yield* Effect.mapError(
            postman.send(magicLinkLetter({ to: payload.email, link, language: issued.language })),
            () => new Unavailable({ detail: "The link could not be mailed just now.", retry_after_seconds: 30 }),
          )
        }
        return {
          status: "sent" as const,
          expires_at: issued.expiresAt,
          dev_magic_link: book.environment === "development" ? link : null,
        }
      }),
      consumeMagicLink: ({ payload }) => accounts.consume(payload.token),
    })
  }),
)
