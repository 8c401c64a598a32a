/** `svc sign-in <url>`: signs in at a site as the Identity, and prints the address of the site to open. */
import { Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { call, connect, explained, handleOf, understood } from "../client/Connection.ts"
import { apiFlag, handleFlag } from "../client/Flags.ts"
import { formatFlags, respond } from "../client/Format.ts"
import { report } from "../client/Printing.ts"

const Started = Schema.Struct({
  status: Schema.String,
  site: Schema.String,
  redirect_url: Schema.NullOr(Schema.String),
})

export const command = Command.make(
  "sign-in",
  {
    url: Argument.String("url").pipe(
      Argument.withDescription("The address to which the site redirected, in quotes, because it contains &"),
    ),
    handle: handleFlag,
    api: apiFlag,
    ...formatFlags,
  },
  Effect.fnUntraced(function* ({ api, handle, url, ...format }) {
    const connection = yield* connect(api)
    const name = yield* handleOf(connection, handle)
    const path = `/api/identities/${encodeURIComponent(name)}/sign-ins`
    const response = yield* call(connection.api, "POST", path, {
      key: connection.key,
      body: { authorization_url: url },
    })
    const { redirect_url, site } = yield* understood(connection.api, Schema.decodeUnknownEffect(Started)(response))
    if (redirect_url !== null) return yield* respond(format, response, () => redirect_url)
    const message = `The sign-in at ${site} awaits approval: ${connection.api}/console/identities/${encodeURIComponent(name)}/proof. Run the command again afterwards.`
    report(message, { code: "awaiting_approval", detail: message, agent_hint: "wait" })
    process.exitCode = 1
  }, explained),
).pipe(
  Command.withDescription(
    "Sign in at a site (OpenID Connect) as the Identity. Prints the address to open, which is valid for a minute. `svc sign-in create` is the same as a tool.",
  ),
)
