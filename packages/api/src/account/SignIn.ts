/** Sign-up and sign-in. */
import { Api } from "@svc/domain/Api"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Effect } from "effect"
import * as Serving from "../http/Serving.ts"
import * as MagicLinks from "./MagicLinks.ts"

export const layer = Serving.group(
  Api,
  "sign_in",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const request = yield* MagicLinks.make

    return handlers.handleAll({
      registration: () => Effect.succeed({ state: accounts.registration }),
      requestMagicLink: (call) => request(call.payload, call.request.headers["accept-language"]),
      consumeMagicLink: ({ payload }) => accounts.consume(payload.token),
    })
  }),
)
