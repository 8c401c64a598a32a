/** The session at hand, and who is calling. */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Exchange } from "../Exchange.ts"
import * as Serving from "../http/Serving.ts"
import { forget } from "./ConsoleSession.ts"

export const layer = Serving.group(
  Api,
  "session",
  Effect.fn(function* (handlers) {
    const accounts = yield* Accounts
    const book = yield* Addresses

    return handlers.handleAll({
      read: Effect.fnUntraced(function* () {
        const caller = yield* Caller
        return {
          session:
            caller.session === null
              ? null
              : { id: caller.credentialId, expires_at: caller.session.expiresAt, created_at: caller.session.createdAt },
          org: caller.org,
          tos: yield* accounts.terms(caller.org),
        }
      }),
      revoke: Effect.fnUntraced(function* () {
        const { credentialId } = yield* Caller
        yield* accounts.revokeSession(credentialId)
        forget(book, yield* HttpServerRequest.HttpServerRequest, yield* Exchange)
      }),
      whoami: () =>
        Effect.map(Caller, (caller) => ({
          org: caller.org,
          caller: {
            kind: caller.kind,
            key_id: caller.kind === "session" ? null : caller.credentialId,
            key_name: caller.keyName,
            identity_id: caller.identity?.id ?? null,
            handle: caller.identity?.handle ?? null,
          },
        })),
    })
  }),
)
