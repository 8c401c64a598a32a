/** `svc fetch <url>`: sends a web request that is signed as the Identity. */
import type * as Sdk from "@agent-identity/sdk"
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { connect, explained, handleOf, Misused, OutOfReach, Refused } from "../client/Connection.ts"
import { apiFlag, handleFlag } from "../client/Flags.ts"
import { report, terminalText } from "../client/Printing.ts"

const failureOf = ({ ApiError, ConnectionError }: typeof Sdk, error: unknown) =>
  error instanceof ApiError
    ? new Refused({
        message: `${error.problem.title}: ${error.problem.detail} (${error.code}, ${error.agentHint})`,
        code: error.code,
        retryAfterSeconds: error.retryAfterSeconds ?? null,
        problem: error.problem,
      })
    : new OutOfReach({
        message: error instanceof ConnectionError ? error.message : `The site is unreachable: ${String(error)}`,
      })

/** Writes the body as it arrives; a terminal gets no control characters of a stranger. */
const print = async (response: Response, withHead: boolean) => {
  const { stdout } = process
  const write = (bytes: Uint8Array | string) => new Promise<void>((resolve) => stdout.write(bytes, () => resolve()))
  if (withHead) {
    const lines = [`HTTP ${response.status}`, ...[...response.headers].map(([name, value]) => `${name}: ${value}`)]
    await write(`${terminalText(lines.join("\n"))}\n\n`)
  }
  if (stdout.isTTY) return write(terminalText(await response.text()))
  for await (const chunk of response.body ?? []) await write(chunk)
}

export const command = Command.make(
  "fetch",
  {
    url: Argument.String("url").pipe(Argument.withDescription("The address")),
    request: Flag.String("request").pipe(
      Flag.withAlias("X"),
      Flag.withDescription("The method; default: GET, or POST with --data"),
      Flag.optional,
    ),
    header: Flag.String("header").pipe(
      Flag.withAlias("H"),
      Flag.withDescription("A header field, such as 'accept: text/html'; may be repeated"),
      Flag.atLeast(0),
    ),
    data: Flag.String("data").pipe(Flag.withAlias("d"), Flag.withDescription("The body"), Flag.optional),
    include: Flag.Boolean("include").pipe(
      Flag.withAlias("i"),
      Flag.withDescription("Print the status and the header fields too"),
      Flag.withDefault(false),
    ),
    handle: handleFlag,
    api: apiFlag,
  },
  Effect.fnUntraced(function* ({ api, data, handle, header, include, request, url }) {
    if (!URL.canParse(url)) return yield* new Misused({ message: `${url} is not an absolute address.` })
    const headers = new Headers()
    for (const line of header) {
      const [, name, value] = /^([^:\s]+):(.*)$/.exec(line) ?? []
      if (name === undefined || value === undefined) {
        return yield* new Misused({ message: `${line} is not a header field: write 'name: value'.` })
      }
      headers.append(name, value.trim())
    }
    const connection = yield* connect(api)
    const name = yield* handleOf(connection, handle)
    const sdk = yield* Effect.promise(() => import("@agent-identity/sdk"))
    const client = sdk.createClient({ key: Redacted.value(connection.key), baseUrl: connection.api })
    const response = yield* Effect.tryPromise({
      try: (signal) =>
        client.identity(name).fetch(url, {
          method: Option.getOrElse(request, () => (Option.isSome(data) ? "POST" : "GET")),
          headers,
          signal,
          ...(Option.isSome(data) ? { body: data.value } : {}),
        }),
      catch: (error) => failureOf(sdk, error),
    })
    yield* Effect.tryPromise({
      try: () => print(response, include),
      catch: (error) => failureOf(sdk, error),
    })
    if (!response.ok) {
      const message = `${new URL(response.url === "" ? url : response.url).host} returned ${response.status}.`
      report(message, { code: "site_refused", detail: message, agent_hint: "fix_call" })
      process.exitCode = 1
    }
  }, explained),
).pipe(Command.withDescription("Send a web request that is signed as the Identity, so that the site knows the agent."))
