/** How a command prints its response: for people, as JSON (`--json`), or what a jq expression selects from the JSON (`--jq`). */
import { Effect, Option } from "effect"
import { CliError, Flag } from "effect/cli"
import { explained, Misused } from "./Connection.ts"
import { say, sayJson } from "./Printing.ts"

type Filter = (body: unknown) => Iterable<unknown>

/** Compiles an expression before the command does anything. The library is loaded only for this flag. */
const compiled = (expression: string): Effect.Effect<Filter, CliError.InvalidValue> =>
  Effect.flatMap(
    Effect.promise(() => import("@michaelhomer/jqjs")),
    ({ compile }) =>
      Effect.try({
        try: () => compile(expression),
        catch: (error) =>
          new CliError.InvalidValue({
            option: "jq",
            value: expression,
            expected: `an expression of jq (${messageOf(error)})`,
            kind: "flag",
          }),
      }),
  )

/** The library throws texts and errors. */
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).split("\n", 1)[0]!

/** Flags of every command that prints a response. */
export const formatFlags = {
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print the response as JSON"), Flag.withDefault(false)),
  jq: Flag.String("jq").pipe(
    Flag.withDescription("Print what this jq expression selects from the JSON of the response, text without quotes"),
    Flag.mapEffect(compiled),
    Flag.optional,
  ),
}

export interface Format {
  readonly json: boolean
  readonly jq: Option.Option<Filter>
}

export const forPeople: Format = { json: false, jq: Option.none() }

/** Returns whether standard output is for machines, so that notes for people go to standard error. */
export const isForMachines = ({ json, jq }: Format): boolean => json || Option.isSome(jq)

const filtered = (filter: Filter, body: unknown) =>
  Effect.gen(function* () {
    // The library would return members of the response itself, which are printed and not changed.
    const found = yield* Effect.try({
      try: () => [...filter(body)],
      catch: (error) => new Misused({ message: `--jq does not fit the response: ${messageOf(error)}` }),
    })
    for (const value of found) yield* typeof value === "string" ? say(value) : sayJson(value)
  })

/** Prints a response; `people` is its text for people. */
export const respond = (format: Format, body: unknown, people: () => string): Effect.Effect<void, Misused> =>
  Option.match(format.jq, {
    onNone: () => (format.json ? sayJson(body) : say(people())),
    onSome: (filter) => filtered(filter, body),
  })

/** Prints a response of an operator's command, and explains an expression that does not fit it. */
export const print = (format: Format, body: unknown, lines: ReadonlyArray<string>) =>
  explained(respond(format, body, () => lines.join("\n")))

/** Prints a note for people: to standard error if standard output is for machines. */
export const note = (format: Format, text: string): Effect.Effect<void> =>
  isForMachines(format) ? Effect.sync(() => void process.stderr.write(`${text}\n`)) : say(text)
