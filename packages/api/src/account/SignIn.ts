/** Sign-up and sign-in. */
import { Api } from "@svc/domain/Api"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as RequestServices from "../http/RequestServices.ts"
import { keptByNobody } from "../RequestContext.ts"
import * as MagicLinks from "./MagicLinks.ts"
import * as MagicLinkSignIn from "./MagicLinkSignIn.ts"

export const layer = RequestServices.group(
  Api,
  "sign_in",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const request = yield* MagicLinks.make
    const signIn = yield* MagicLinkSignIn.make

    return handlers.handleAll({
      registration: () => Effect.succeed({ state: accounts.registration }),
      requestMagicLink: Effect.fnUntraced(function* (call) {
        yield* keptByNobody
        const body = yield* request(call.payload, call.request.headers["accept-language"])
        // The session that the link opens.
        return HttpApiSchema.withHeaders({ body, headers: { location: "/api/auth/session" } })
      }),
      consumeMagicLink: ({ payload, request }) =>
        Effect.andThen(keptByNobody, signIn(payload.token, request.headers["user-agent"])),
    })
  }),
)
