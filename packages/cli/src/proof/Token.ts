/** `svc token`: prints an identity token for another service, or keeps one fresh in a file that the SDKs of clouds read. */
import { rename, writeFile } from "node:fs/promises"
import { Effect, Option, Schedule, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { call, connect, explained, handleOf, isPassing, Misused, understood } from "../client/Connection.ts"
import { apiFlag, handleFlag } from "../client/Flags.ts"
import { report, say, sayJson } from "../client/Printing.ts"

const Token = Schema.Struct({ token: Schema.String, expires_at: Schema.String })
/** The lifetime of a token, as the API sets it by default. */
const usualSeconds = 300
/** The next attempts after the service was unreachable or busy. */
const retry = Schedule.spaced("10 seconds")

/** Returns the seconds of `4m`, `90s` or `90`. */
const secondsOf = (text: string): number | undefined => {
  const [, number, unit = "s"] = /^(\d{1,6})(s|m|h)?$/.exec(text) ?? []
  return number === undefined || Number(number) === 0
    ? undefined
    : Number(number) * { s: 1, m: 60, h: 3600 }[unit as "s" | "m" | "h"]
}

/** Replaces the file in one step, so that a reader never sees a part of a token. Only the user may read it. */
const write = (file: string, token: string) =>
  Effect.tryPromise({
    try: async () => {
      const next = `${file}.${process.pid}.tmp`
      await writeFile(next, token, { mode: 0o600 })
      await rename(next, file)
    },
    catch: (error) => new Misused({ message: `The token cannot be written to ${file}: ${String(error)}` }),
  })

export const command = Command.make(
  "token",
  {
    audience: Flag.String("audience").pipe(
      Flag.withDescription("The service that the token is for, as that service expects it, such as sts.amazonaws.com"),
    ),
    expiresIn: Flag.Int("expires-in").pipe(
      Flag.withDescription("The lifetime in seconds, 60 to 3600"),
      Flag.withDefault(usualSeconds),
    ),
    nonce: Flag.String("nonce").pipe(Flag.withDescription("A value that the token repeats"), Flag.optional),
    algorithm: Flag.Literals("algorithm", ["RS256", "ES256"]).pipe(
      Flag.withDescription("The signature algorithm"),
      Flag.withDefault("RS256"),
    ),
    format: Flag.Literals("format", ["token", "json", "kubernetes"]).pipe(
      Flag.withDescription("Output format; kubernetes is the format of a kubectl exec plugin"),
      Flag.withDefault("token"),
    ),
    write: Flag.String("write").pipe(
      Flag.withDescription("Write the token to this file instead of printing it"),
      Flag.optional,
    ),
    every: Flag.String("every").pipe(
      Flag.withDescription("Keep running and write a new token at this interval, such as 4m; needs --write"),
      Flag.optional,
    ),
    handle: handleFlag,
    api: apiFlag,
  },
  Effect.fnUntraced(function* (flags) {
    const { audience, expiresIn, algorithm, format } = flags
    const every = Option.map(flags.every, secondsOf)
    if (Option.isSome(every) && Option.isNone(flags.write)) {
      return yield* new Misused({ message: "--every needs --write: name the file to keep fresh." })
    }
    if (Option.isSome(every) && (every.value === undefined || every.value >= expiresIn)) {
      return yield* new Misused({
        message: `--every is a time such as 4m, shorter than the lifetime of the token (${expiresIn} s).`,
      })
    }
    const connection = yield* connect(flags.api)
    const { api, key } = connection
    const handle = yield* handleOf(connection, flags.handle)
    const nonce = Option.match(flags.nonce, { onNone: () => ({}), onSome: (value) => ({ nonce: value }) })
    const body = { audience, expires_in: expiresIn, algorithm, ...nonce }
    const created = Effect.flatMap(
      call(api, "POST", `/api/identities/${encodeURIComponent(handle)}/tokens`, { key, body }),
      (response) => understood(api, Schema.decodeUnknownEffect(Token)(response)),
    )
    if (Option.isNone(flags.write)) {
      const { token, expires_at } = yield* created
      if (format === "token") return yield* say(token)
      if (format === "json") return yield* sayJson({ token, expires_at })
      return yield* sayJson({
        apiVersion: "client.authentication.k8s.io/v1",
        kind: "ExecCredential",
        status: { token, expirationTimestamp: expires_at },
      })
    }
    const file = flags.write.value
    const renewed = Effect.flatMap(created, ({ token }) => write(file, token))
    yield* renewed
    if (Option.isNone(every)) return
    while (true) {
      yield* Effect.sleep(every.value! * 1000)
      // The token in the file is still valid for some time, so a busy service is asked again.
      yield* Effect.retry(
        Effect.tapError(renewed, (error) =>
          Effect.sync(() => report(error.message, { code: "token_not_renewed", detail: error.message })),
        ),
        {
          while: (error) => error._tag === "OutOfReach" || (error._tag === "Refused" && isPassing(error)),
          schedule: retry,
        },
      )
    }
  }, explained),
).pipe(
  Command.withDescription(
    "Get a short-lived token with which the Identity signs in to another service. `svc token create` is the same as a tool.",
  ),
)
