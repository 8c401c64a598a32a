/** `svc grants list`, `svc grants revoke`: apps that are connected by OAuth. */
import { Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { apiFlag } from "../client/Flags.ts"
import { call, callPages, connect, explained, understood } from "../client/Connection.ts"
import { formatFlags, respond } from "../client/Format.ts"

const list = Command.make(
  "list",
  { api: apiFlag, ...formatFlags },
  Effect.fnUntraced(function* (flags) {
    const connection = yield* connect(flags.api)
    const body = yield* callPages(connection, "/api/grants", "grants")
    const { Grant } = yield* Effect.promise(() => import("@svc/domain/oauth/Grant"))
    const { pretty } = yield* Effect.promise(() => import("../tools/Print.ts"))
    const decode = Schema.decodeUnknownEffect(Schema.Struct({ grants: Schema.Array(Grant) }))
    const { grants } = yield* understood(connection.api, decode(body))
    yield* respond(flags, body, () =>
      pretty({
        grants: grants.map((grant) => ({
          id: grant.id,
          app: grant.client_name,
          host: grant.redirect_host,
          agents: grant.handles === null ? "all" : grant.handles.join(" "),
          scopes: grant.scopes.join(" "),
          last_used_at: grant.last_used_at?.toISOString() ?? null,
          expires_at: grant.expires_at.toISOString(),
        })),
      }),
    )
  }, explained),
).pipe(Command.withDescription("List the connected apps."))

const revoke = Command.make(
  "revoke",
  { id: Argument.String("id"), api: apiFlag, ...formatFlags },
  Effect.fnUntraced(function* (flags) {
    const { api, key } = yield* connect(flags.api)
    yield* call(api, "DELETE", `/api/grants/${encodeURIComponent(flags.id)}`, { key })
    yield* respond(flags, { revoked: flags.id }, () => "Access revoked.")
  }, explained),
).pipe(Command.withDescription("Revoke an app's access."))

export const command = Command.make("grants").pipe(
  Command.withDescription("Manage apps connected by OAuth."),
  Command.withSubcommands([list, revoke]),
)
