/**
 * The API client of the command line. The address comes from `--api`, `SVC_API_URL` or the stored login; the credential
 * from `SVC_KEY` or the stored login.
 */
import { newestVersion } from "@svc/domain/Versions"
import { Effect, Option, Redacted, Schema } from "effect"
import { report } from "./Printing.ts"
import * as Login from "./Login.ts"

const defaultApi = "http://localhost:8080"

/** The service rejected the request. Title, detail and hint of the problem are for the user. Exit code 1. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  message: Schema.String,
  code: Schema.String,
  retryAfterSeconds: Schema.NullOr(Schema.Int),
  /** The problem as received. */
  problem: Schema.optionalKey(Schema.Unknown),
}) {}

/** Returns whether the same call may succeed later. */
export const isPassing = ({ problem }: Refused): boolean => Object(problem).agent_hint === "wait"

/** The service is unreachable. Exit code 3. */
export class OutOfReach extends Schema.TaggedError<OutOfReach>()("OutOfReach", { message: Schema.String }) {}

/** No credential is available. Exit code 2. */
export class NotLoggedIn extends Schema.TaggedError<NotLoggedIn>()("NotLoggedIn", { message: Schema.String }) {}

/** The command line is invalid. Exit code 2. */
export class Misused extends Schema.TaggedError<Misused>()("Misused", { message: Schema.String }) {}

export interface Connection {
  readonly api: string
  readonly key: Redacted.Redacted<string>
}

const environment = (name: string) => Option.fromNullishOr(process.env[name] === "" ? undefined : process.env[name])
const withoutSlash = (url: string) => url.replace(/\/+$/, "")

const isHttp = (text: string) => /^https?:\/\/[^/]/i.test(text) && URL.canParse(text)

export const apiOf = Effect.fnUntraced(function* (flag: Option.Option<string>) {
  const login = yield* Login.load
  const api = flag.pipe(
    Option.orElse(() => environment("SVC_API_URL")),
    Option.orElse(() => Option.map(login, (stored) => stored.api)),
    Option.getOrElse(() => defaultApi),
  )
  if (!isHttp(api)) {
    return yield* new Misused({ message: `${api} is not an API address: pass --api https://… or set SVC_API_URL.` })
  }
  const { hash, password, search, username } = new URL(api)
  return username + password + search + hash === ""
    ? withoutSlash(api)
    : // The address may contain a secret, so it is not repeated.
      yield* new Misused({
        message: "The API's address must not contain a user, a password, ? or #. Set the credential in SVC_KEY.",
      })
})

/**
 * Returns whether a header can contain the key. A key that was truncated where it was copied from often ends with an
 * ellipsis.
 */
const isSendable = (key: string) => /^[\x21-\x7e]+$/.test(key)

export const connect = Effect.fnUntraced(function* (flag: Option.Option<string>) {
  const api = yield* apiOf(flag)
  const login = yield* Login.load
  const key = environment("SVC_KEY").pipe(
    Option.map((text) => Redacted.make(text)),
    // A stored key is only sent to the service that issued it.
    Option.orElse(() =>
      Option.flatMap(login, (stored) => (stored.api === api ? Option.some(stored.key) : Option.none())),
    ),
  )
  if (Option.isNone(key)) {
    return yield* new NotLoggedIn({ message: `There is no credential for ${api}: run \`svc login\` or set SVC_KEY.` })
  }
  if (!isSendable(Redacted.value(key.value))) {
    return yield* new Misused({
      message: "The key contains a space, a line break or an invalid character: copy the whole key into SVC_KEY.",
    })
  }
  const connection: Connection = { api, key: key.value }
  return connection
})

const ProblemBody = Schema.Struct({
  title: Schema.String,
  detail: Schema.String,
  code: Schema.String,
  agent_hint: Schema.String,
  retry_after_seconds: Schema.optionalKey(Schema.Int),
})
const readProblem = Schema.decodeUnknownOption(ProblemBody)

/** Calls the API and returns the body. */
export const call = (
  api: string,
  method: string,
  path: string,
  options: { readonly key?: Redacted.Redacted<string>; readonly body?: unknown } = {},
) =>
  Effect.flatMap(
    Effect.try({
      try: () =>
        new Request(`${api}${path}`, {
          method,
          headers: {
            ...(options.key === undefined ? {} : { authorization: `Bearer ${Redacted.value(options.key)}` }),
            ...(options.body === undefined ? {} : { "content-type": "application/json" }),
          },
          ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
        }),
      catch: () => new OutOfReach({ message: `${api} is not an API address.` }),
    }),
    (request) => send(api, request),
  )

/** Reads all pages of a list, and returns them as one page. */
export const callPages = Effect.fnUntraced(function* ({ api, key }: Connection, path: string, member: string) {
  const entries: Array<unknown> = []
  let cursor = ""
  while (true) {
    const page = (yield* call(api, "GET", `${path}?limit=200${cursor}`, { key })) as Readonly<Record<string, unknown>>
    const { [member]: found, next_cursor: next } = page
    // The caller reports a response without the list.
    if (!Array.isArray(found)) return page
    entries.push(...found)
    if (typeof next !== "string") return { ...page, [member]: entries }
    cursor = `&cursor=${encodeURIComponent(next)}`
  }
})

const Who = Schema.Struct({ caller: Schema.Struct({ handle: Schema.NullOr(Schema.String) }) })

/** Returns the Handle that `--handle` names, or that of the credential's own Identity; null if it has none. */
export const optionalHandleOf = Effect.fnUntraced(function* ({ api, key }: Connection, flag: Option.Option<string>) {
  if (Option.isSome(flag)) return flag.value.replace(/^@/, "")
  const who = yield* understood(
    api,
    Schema.decodeUnknownEffect(Who)(yield* call(api, "GET", "/api/auth/whoami", { key })),
  )
  return who.caller.handle
})

/** Returns the Handle like {@link optionalHandleOf}, or fails if there is none. */
export const handleOf = Effect.fnUntraced(function* (connection: Connection, flag: Option.Option<string>) {
  const handle = yield* optionalHandleOf(connection, flag)
  return handle ?? (yield* new NotLoggedIn({ message: "Name the Identity: --handle <handle>." }))
})

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Sends a prepared request and returns the body, which is an object. Any other response (a captive portal, a proxy, a
 * redirect) does not come from the service, so the request had no effect.
 */
export const send = Effect.fnUntraced(function* (api: string, request: Request) {
  const response = yield* Effect.tryPromise({
    try: (signal) => {
      // The command prints the representations of its own release.
      request.headers.set("svc-version", newestVersion)
      return fetch(request, { signal, redirect: "manual" })
    },
    catch: (error) => new OutOfReach({ message: `${api} is unreachable: ${reasonOf(error)}` }),
  })
  const text = yield* Effect.tryPromise({
    try: () => response.text(),
    catch: () =>
      new OutOfReach({
        message: `${api} closed the connection during the response; the request may have taken effect.`,
      }),
  })
  if (response.status === 204) return {}
  const body: unknown = yield* Effect.orElseSucceed(
    Effect.try((): unknown => JSON.parse(text)),
    () => undefined,
  )
  if (response.ok && isObject(body)) return body
  const problem = response.ok ? undefined : Option.getOrUndefined(readProblem(body))
  return yield* problem === undefined
    ? new OutOfReach({ message: `${api} returned ${response.status}, but the response is not from this service.` })
    : new Refused({
        message: `${problem.title}: ${problem.detail} (${problem.code}, ${problem.agent_hint})`,
        code: problem.code,
        retryAfterSeconds: problem.retry_after_seconds ?? null,
        problem: body,
      })
})

/** Decodes a response. A response that cannot be decoded does not come from the service. */
export const understood = <A, E>(api: string, read: Effect.Effect<A, E>): Effect.Effect<A, OutOfReach> =>
  Effect.mapError(read, () => new OutOfReach({ message: `${api} returned a response that is not from this service.` }))

const reasonOf = (error: unknown) => {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return cause instanceof Error ? cause.message || String(Reflect.get(cause, "code")) : String(cause)
}

const exitCodes: Readonly<Record<string, number>> = { Refused: 1, NotLoggedIn: 2, Misused: 2, OutOfReach: 3 }

type Failure = Refused | NotLoggedIn | Misused | OutOfReach | Login.NotKept

const codes: Readonly<Record<Failure["_tag"], string>> = {
  Refused: "refused",
  NotLoggedIn: "not_logged_in",
  Misused: "usage",
  OutOfReach: "out_of_reach",
  NotKept: "login_not_kept",
}

/** Prints an error to standard error and sets the exit code. */
export const explain = (error: Failure): Effect.Effect<void> =>
  Effect.sync(() => {
    report(
      error.message,
      error._tag === "Refused" && error.problem !== undefined
        ? error.problem
        : {
            code: error._tag === "Refused" ? error.code : codes[error._tag],
            detail: error.message,
            agent_hint: error._tag === "OutOfReach" ? "wait" : "fix_call",
          },
    )
    process.exitCode = exitCodes[error._tag] ?? 1
  })

/** Prints the error of a command. Does not compile for a command with an error that `explain` cannot print. */
export const explained = <A, R>(command: Effect.Effect<A, Failure, R>): Effect.Effect<A | void, never, R> =>
  Effect.catch(command, explain)
