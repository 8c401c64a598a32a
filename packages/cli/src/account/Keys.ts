/** `svc keys create|list|rotate|revoke`: keys with their scopes, expiry and networks. */
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { call, callPages, connect, explained, Misused, understood } from "../client/Connection.ts"
import { pretty } from "../tools/Print.ts"
import { apiFlag } from "../client/Flags.ts"
import { type Format, formatFlags, respond } from "../client/Format.ts"

/** Writes to standard error, since standard output carries only the key. */
const tell = (text: string) => Effect.sync(() => void process.stderr.write(`${text}\n`))

const words = (text: string) => text.split(/[\s,]+/).filter((one) => one !== "")

export const scopeFlag = Flag.String("scope").pipe(
  Flag.withDescription("Comma-separated scopes of the key (mail:read,card:write); default: all"),
  Flag.optional,
)
export const expiresFlag = Flag.String("expires").pipe(
  Flag.withDescription("Lifetime of the key in days (30d); default: no expiry"),
  Flag.optional,
)

/** Parses `30d`, `2w` or `30` to a number of days from 1 to 365. */
const daysOf = (text: string): Effect.Effect<number, Misused> => {
  const [, count, unit] = /^(\d{1,3})([dw]?)$/.exec(text.trim()) ?? []
  const days = count === undefined ? 0 : Number(count) * (unit === "w" ? 7 : 1)
  return days >= 1 && days <= 365
    ? Effect.succeed(days)
    : Effect.fail(new Misused({ message: `--expires takes 1 to 365 days, as in 30d, not ${text}` }))
}

/** Returns the members of a request for a key. */
export const requestedRights = Effect.fnUntraced(function* (flags: {
  readonly scope: Option.Option<string>
  readonly expires: Option.Option<string>
}) {
  return {
    ...(Option.isNone(flags.scope) ? {} : { scopes: words(flags.scope.value) }),
    ...(Option.isNone(flags.expires) ? {} : { expires_in_days: yield* daysOf(flags.expires.value) }),
  }
})

const decodeKey = Schema.decodeUnknownEffect(
  Schema.Struct({
    key: Schema.String,
    api_key: Schema.Struct({
      id: Schema.String,
      name: Schema.String,
      scopes: Schema.Array(Schema.String),
      expires_at: Schema.NullOr(Schema.String),
    }),
  }),
)

/** Prints only the key to standard output, so that a pipe receives nothing else. */
const show = Effect.fnUntraced(function* (api: string, format: Format, body: unknown) {
  const { key, api_key } = yield* understood(api, decodeKey(body))
  yield* tell(
    `${api_key.name} (${api_key.id}) has the scopes ${api_key.scopes.join(", ")} and ${api_key.expires_at === null ? "does not expire" : `expires at ${api_key.expires_at}`}.`,
  )
  yield* respond(format, body, () => key)
})

const create = Command.make(
  "create",
  {
    name: Argument.String("name").pipe(Argument.withDescription("A name that says what uses the key")),
    scope: scopeFlag,
    identity: Flag.String("identity").pipe(
      Flag.withDescription("Handle of the Identity that the key is limited to; default: the whole account"),
      Flag.optional,
    ),
    expires: expiresFlag,
    network: Flag.String("network").pipe(
      Flag.withDescription("Comma-separated addresses or ranges that the key may be used from; default: any"),
      Flag.optional,
    ),
    api: apiFlag,
    ...formatFlags,
  },
  (flags) =>
    Effect.gen(function* () {
      const { api, key } = yield* connect(flags.api)
      const body = {
        name: flags.name,
        ...(yield* requestedRights(flags)),
        ...(Option.isNone(flags.network) ? {} : { networks: words(flags.network.value) }),
      }
      const path = Option.match(flags.identity, {
        onNone: () => "/api/keys",
        onSome: (handle) => `/api/identities/${encodeURIComponent(handle)}/keys`,
      })
      yield* show(api, flags, yield* call(api, "POST", path, { key, body }))
    }).pipe(explained),
).pipe(Command.withDescription("Create a key and print it to standard output. It cannot be shown again."))

const list = Command.make("list", { ...formatFlags, api: apiFlag }, (flags) =>
  Effect.gen(function* () {
    const body = yield* callPages(yield* connect(flags.api), "/api/keys", "api_keys")
    yield* respond(flags, body, () => pretty(inLines(body)))
  }).pipe(explained),
).pipe(Command.withDescription("List the keys that are not revoked, newest first."))

const Listed = Schema.Struct({
  api_keys: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      name: Schema.String,
      scope: Schema.String,
      scopes: Schema.Array(Schema.String),
      networks: Schema.NullOr(Schema.Array(Schema.String)),
      expires_at: Schema.NullOr(Schema.String),
      last_used_at: Schema.NullOr(Schema.String),
    }),
  ),
})
const isListed = Schema.is(Listed)

/** Formats the rights of each key as one table cell. */
const inLines = (body: unknown): unknown =>
  isListed(body)
    ? {
        api_keys: body.api_keys.map(({ id, name, scope, scopes, networks, expires_at, last_used_at }) => ({
          id,
          name,
          for: scope,
          may: scopes.join(" "),
          from: networks?.join(" ") ?? "everywhere",
          ends: expires_at,
          last_used: last_used_at,
        })),
      }
    : body

const id = Argument.String("id").pipe(Argument.withDescription("Id of the key, as listed by `svc keys list`"))

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Parses `24h`, `7d` or `0` to seconds. The service enforces the maximum. */
const secondsOf = (text: string): Effect.Effect<number, Misused> => {
  const [, count, unit = "s"] = /^(\d{1,6})([smhd])?$/.exec(text.trim()) ?? []
  return count === undefined
    ? Effect.fail(new Misused({ message: `--overlap takes a duration such as 24h or 7d, not ${text}` }))
    : Effect.succeed(Number(count) * unitSeconds[unit]!)
}

const rotate = Command.make(
  "rotate",
  {
    id,
    overlap: Flag.String("overlap").pipe(
      Flag.withDescription("How long the old key stays valid: 24h, 7d, 0d"),
      Flag.withDefault("24h"),
    ),
    api: apiFlag,
    ...formatFlags,
  },
  (flags) =>
    Effect.gen(function* () {
      const { api, key } = yield* connect(flags.api)
      const body = { overlap_seconds: yield* secondsOf(flags.overlap) }
      yield* show(
        api,
        flags,
        yield* call(api, "POST", `/api/keys/${encodeURIComponent(flags.id)}/rotate`, { key, body }),
      )
    }).pipe(explained),
).pipe(Command.withDescription("Rotate a key: print a new key with the same rights to standard output."))

const revoke = Command.make("revoke", { id, api: apiFlag, ...formatFlags }, (flags) =>
  Effect.gen(function* () {
    const { api, key } = yield* connect(flags.api)
    yield* call(api, "DELETE", `/api/keys/${encodeURIComponent(flags.id)}`, { key })
    yield* respond(flags, { revoked: flags.id }, () => "Revoked.")
  }).pipe(explained),
).pipe(Command.withDescription("Revoke a key. Requests that use it are rejected from now on."))

export const command = Command.make("keys").pipe(
  Command.withDescription("Manage keys, their scopes, expiry and allowed networks."),
  Command.withSubcommands([create, list, rotate, revoke]),
)
