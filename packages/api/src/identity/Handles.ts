import { Api } from "@svc/domain/Api"
import { HandleRules } from "@svc/cluster/handles/HandleRules"
import { Effect } from "effect"
import * as RequestServices from "../http/RequestServices.ts"

/** An unavailable name is a result, not an error. The check reserves nothing. */
export const layer = RequestServices.group(
  Api,
  "handles",
  Effect.fn(function* (handlers) {
    const handles = yield* HandleRules
    return handlers.handle("check", ({ params }) =>
      handles.claimable(params.handle).pipe(
        Effect.map((name) => ({ handle: name.handle, available: true })),
        Effect.catchTags({
          handle_invalid: (refusal) => unavailable(params.handle, refusal),
          handle_reserved: (refusal) => unavailable(params.handle, refusal),
          handle_taken: (refusal) => unavailable(params.handle, refusal),
        }),
      ),
    )
  }),
)

const unavailable = <const Code extends string>(
  handle: string,
  refusal: { readonly code: Code; readonly detail: string },
) => Effect.succeed({ handle, available: false, code: refusal.code, detail: refusal.detail })
