/** `svc login`, `svc logout`, `svc whoami`. */
import * as os from "node:os"
import { Effect, Option, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { apiOf, call, connect, explained, isPassing, understood } from "../client/Connection.ts"
import * as Login from "../client/Login.ts"
import { apiFlag } from "../client/Flags.ts"
import { withProgress } from "../client/Progress.ts"
import * as Keys from "./Keys.ts"
import * as Open from "./Open.ts"
import { type Format, formatFlags, note, respond } from "../client/Format.ts"

const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ key: Schema.String }))
const decodeWho = Schema.decodeUnknownEffect(
  Schema.Struct({
    org: Schema.Struct({ email: Schema.String }),
    caller: Schema.Struct({
      kind: Schema.String,
      key_name: Schema.NullOr(Schema.String),
      handle: Schema.NullOr(Schema.String),
    }),
  }),
)

/** The longest interval between polls while the service is unreachable: it is found again soon after it is back. */
const slowestSeconds = 60

/**
 * Polls as RFC 8628 section 3.5 requires: at the interval, and five seconds slower after each `slow_down`. A failed connection
 * and a busy service are no rejection, so polling continues more slowly.
 */
const collect = Effect.fnUntraced(function* (api: string, deviceCode: string, intervalSeconds: number) {
  let interval = intervalSeconds
  while (true) {
    yield* Effect.sleep(interval * 1000)
    const polled = yield* Effect.result(
      call(api, "POST", "/api/auth/device/token", { body: { device_code: deviceCode } }),
    )
    if (polled._tag === "Success") return (yield* understood(api, decodeKey(polled.success))).key
    const failure = polled.failure
    if (failure._tag === "Refused" && failure.code === "slow_down") interval = failure.retryAfterSeconds ?? interval + 5
    else if (failure._tag !== "Refused" || failure.code !== "authorization_pending") {
      if (failure._tag === "Refused" && !isPassing(failure)) return yield* failure
      interval = Math.min(interval * 2, slowestSeconds)
    }
  }
})

/** Signs in: the account holder approves a code in the browser, and the key is stored on this machine. */
export const signIn = Effect.fnUntraced(function* (
  api: string,
  format: Format,
  given: Readonly<Record<string, unknown>> = {},
) {
  yield* Login.prepare
  const body = { name: `svc on ${os.hostname()}`.slice(0, 100), client: "svc command line", ...given }
  const { DeviceStarted } = yield* Effect.promise(() => import("@svc/domain/account/Device"))
  const answer = yield* call(api, "POST", "/api/auth/device", { body })
  const started = yield* understood(api, Schema.decodeUnknownEffect(DeviceStarted)(answer))
  yield* note(
    format,
    `Open ${started.verification_uri_complete}\nand approve the code ${started.user_code}. Waiting ...`,
  )
  const key = yield* withProgress(
    "Waiting for the approval",
    collect(api, started.device_code, started.interval_seconds),
  )
  yield* Login.save({ api, key: Redacted.make(key) })
  return Login.file()
})

const login = Command.make(
  "login",
  {
    api: apiFlag,
    name: Flag.String("name").pipe(
      Flag.withDescription("Name of the new key"),
      Flag.withDefault(`svc on ${os.hostname()}`),
    ),
    scope: Keys.scopeFlag,
    expires: Keys.expiresFlag,
    ...formatFlags,
  },
  Effect.fnUntraced(function* (flags) {
    const api = yield* apiOf(flags.api)
    const rights = yield* Keys.requestedRights(flags)
    const file = yield* signIn(api, flags, { name: flags.name.slice(0, 100), ...rights })
    yield* respond(flags, { api, file }, () => `Logged in. The key is stored in ${file}.`)
  }, explained),
).pipe(Command.withDescription("Log in: the account holder approves a code, and this machine receives an Admin Key."))

const decodeKeyId = Schema.decodeUnknownEffect(
  Schema.Struct({ caller: Schema.Struct({ key_id: Schema.NullOr(Schema.String) }) }),
)

/** Revokes the key; a key unknown to the service counts as revoked. */
const revoke = Effect.fnUntraced(
  function* ({ api, key }: Login.Login) {
    const { caller } = yield* understood(api, decodeKeyId(yield* call(api, "GET", "/api/auth/whoami", { key })))
    if (caller.key_id !== null) yield* call(api, "DELETE", `/api/keys/${caller.key_id}`, { key })
  },
  Effect.catchTag("Refused", (refused) =>
    ["unauthenticated", "account_deleting", "not_found"].includes(refused.code) ? Effect.void : Effect.fail(refused),
  ),
)

const logout = Command.make(
  "logout",
  {
    local: Flag.Boolean("local").pipe(
      Flag.withDescription("Delete the stored key without revoking it, even if the service is unreachable"),
      Flag.withDefault(false),
    ),
    ...formatFlags,
  },
  Effect.fnUntraced(function* ({ local, ...format }) {
    const stored = yield* Login.load
    if (Option.isNone(stored)) return yield* respond(format, { was_logged_in: false }, () => "You are not logged in.")
    if (!local) {
      // A key without `account:admin` cannot revoke itself, and the service may be gone for good.
      const hint = note(format, "The key stays stored: `svc logout --local` deletes it without revoking it.")
      yield* Effect.tapError(revoke(stored.value), () => hint)
    }
    yield* Login.forget
    yield* respond(format, { was_logged_in: true, revoked: !local }, () =>
      local ? "Stored key deleted. The key itself stays valid until it is revoked." : "Logged out. The key is revoked.",
    )
  }, explained),
).pipe(Command.withDescription("Revoke the stored key and delete it from this machine."))

const whoami = Command.make(
  "whoami",
  { api: apiFlag, ...formatFlags },
  Effect.fnUntraced(function* (flags) {
    const { api, key } = yield* connect(flags.api)
    const body = yield* call(api, "GET", "/api/auth/whoami", { key })
    const { org, caller } = yield* understood(api, decodeWho(body))
    const as = caller.handle === null ? (caller.key_name ?? caller.kind) : `@${caller.handle}`
    yield* respond(flags, body, () => `${org.email} as ${as} (${caller.kind}) at ${api}`)
  }, explained),
).pipe(Command.withDescription("Show the account and credential in use."))

export const commands = [login, logout, whoami, Keys.command, Open.command] as const
