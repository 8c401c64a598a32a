/**
 * One command per endpoint that is a tool, derived from the same annotations: `svc_vault_set` becomes `svc vault set <name>
 * --value-stdin`. Required arguments are positional, optional ones are flags, and secrets are only read from standard
 * input.
 */
import { type BoundTool, byName, endpoints } from "@svc/api/mcp/Tools"
import { requestOf } from "@svc/api/mcp/Requests"
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { apiFlag } from "../client/Flags.ts"
import { connect, explained, Misused, send } from "../client/Connection.ts"
import { withProgress } from "../client/Progress.ts"
import { pretty } from "./Print.ts"
import { formatFlags, respond } from "../client/Format.ts"

/** JSON Schema of an argument, as far as the command line needs it. */
interface Shape {
  readonly type?: string
  readonly enum?: ReadonlyArray<string>
  readonly description?: string
  readonly anyOf?: ReadonlyArray<Shape>
  readonly items?: Shape
  readonly minItems?: number
}

const kebab = (name: string) => name.replaceAll("_", "-")

/** Returns the schema without null. */
const wanted = (shape: Shape): Shape => shape.anyOf?.find(({ type }) => type !== "null") ?? shape
const isNullable = (shape: Shape) => shape.anyOf?.some(({ type }) => type === "null") === true

const parseJson = (name: string, text: string) =>
  Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: () => new Misused({ message: `--${kebab(name)} is not JSON: ${text.slice(0, 60)}` }),
  })

/** A list of words can be written with commas; text that begins like JSON is parsed as JSON. */
const isList = (shape: Shape) => wanted(shape).type === "array" && wanted(shape).items?.type === "string"

const readList = (name: string, text: string): Given =>
  text.trimStart().startsWith("[")
    ? parseJson(name, text)
    : Effect.succeed(
        text
          .split(",")
          .map((one) => one.trim())
          .filter((one) => one !== ""),
      )

/** A required list that may be empty, such as the recipients of a reply, can be left out. */
const argumentOf = (member: string, shape: Shape): Argument.Argument<string> => {
  const argument = Argument.String(kebab(member)).pipe(Argument.withDescription(shape.description ?? ""))
  return isList(shape) && shape.minItems === undefined ? Argument.withDefault(argument, "") : argument
}

/** The value of an argument; undefined if its flag was not given. */
type Given = Effect.Effect<unknown, Misused>

const flagOf = (name: string, shape: Shape): Flag.Flag<Given> => {
  const { type, enum: choices } = wanted(shape)
  const clears = isNullable(shape)
  const given = <A>(flag: Flag.Flag<A>, note: string, read: (value: A) => Given): Flag.Flag<Given> =>
    flag.pipe(
      Flag.withDescription(`${shape.description ?? ""}${note}`),
      Flag.optional,
      Flag.map((value) => (Option.isNone(value) ? Effect.succeed(undefined) : read(value.value))),
    )
  const flag = kebab(name)
  switch (type) {
    case "integer":
      return given(Flag.Int(flag), "", Effect.succeed)
    case "boolean":
      return given(Flag.Boolean(flag), "", Effect.succeed)
    case "array":
      return isList(shape)
        ? given(Flag.String(flag), " Separate several with commas, or pass JSON.", (text) => readList(name, text))
        : given(Flag.String(flag), " As JSON.", (text) => parseJson(name, text))
    case "object":
      return given(Flag.String(flag), " As JSON.", (text) => parseJson(name, text))
    default:
      return choices === undefined
        ? given(Flag.String(flag), clears ? " An empty text clears it." : "", (text) =>
            Effect.succeed(text === "" && clears ? null : text),
          )
        : given(Flag.Literals(flag, choices), "", Effect.succeed)
  }
}

/** Reads standard input without its final line break. */
const standardInput = Effect.promise(async () => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of process.stdin) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "")
})

/** Returns `allowed-recipient` for `svc_allowed_recipient_list`. */
const nounOf = (name: string) => kebab(name.replace(/^svc_/, "").replace(/_[^_]+$/, ""))

const verbOf = (name: string) => kebab(name.split("_").at(-1)!)

/** Returns the verb of a command. If an argument of the tool selects the endpoint, its value is the verb: `svc approval refuse`. */
const commandNameOf = ({ listed, choice }: BoundTool) => choice?.value ?? verbOf(listed.name)

/** Returns a tool's text with the names of commands in place of those of tools. */
const forTerminal = (text: string) =>
  text.replaceAll(/`(svc_\w+)`/g, (quoted, name: string) =>
    byName.has(name) ? `\`svc ${nounOf(name)} ${verbOf(name)}\`` : quoted,
  )

const commandOf = (tool: BoundTool) => {
  const { name, title, description, inputSchema } = tool.listed
  const shapes = Object.entries<Shape>(inputSchema["properties"] ?? {}).filter(
    ([member]) => member === "idempotency_key" || !Object.hasOwn(tool.extra, member),
  )
  const required = new Set<string>(inputSchema["required"] ?? [])
  const positional = shapes.filter(([member]) => required.has(member) && !tool.secret.has(member))
  const optional = shapes.filter(([member]) => !required.has(member) && !tool.secret.has(member))
  const secret = shapes.filter(([member]) => tool.secret.has(member))
  const command = Command.make(
    commandNameOf(tool),
    {
      positional: positional.map(([member, shape]) => argumentOf(member, shape)),
      optional: optional.map(([member, shape]) => flagOf(member, shape)),
      secret: secret.map(([member, shape]) =>
        Flag.Boolean(`${kebab(member)}-stdin`).pipe(
          Flag.withDescription(`${shape.description ?? ""} Read from standard input.`),
          Flag.withDefault(false),
        ),
      ),
      ...formatFlags,
      api: apiFlag,
    },
    Effect.fnUntraced(function* (given) {
      const { api, key } = yield* connect(given.api)
      const input: Record<string, unknown> = {}
      for (const [at, [member, shape]] of positional.entries()) {
        const text = given.positional[at]!
        input[member] = isList(shape) ? yield* readList(member, text) : text
      }
      for (const [at, [member]] of optional.entries()) {
        const value = yield* given.optional[at]!
        if (value !== undefined) input[member] = value
      }
      for (const [at, [member]] of secret.entries()) {
        if (given.secret[at] === true) input[member] = yield* standardInput
        else if (required.has(member)) {
          return yield* new Misused({
            message: `A secret cannot be an argument: pipe it to --${kebab(member)}-stdin.`,
          })
        }
      }
      const request = requestOf(tool, input, `Bearer ${Redacted.value(key)}`)
      if (request instanceof InvalidRequest) return yield* new Misused({ message: request.detail })
      const { method, target, headers, body: text } = request
      // Uploads take long, and so do calls that wait.
      const body = yield* withProgress(
        `svc ${nounOf(name)} ${commandNameOf(tool)}`,
        send(api, new Request(api + target, { method, headers, ...(text === undefined ? {} : { body: text }) })),
      )
      yield* respond(given, body, () => pretty(body, tool.columns))
    }, explained),
  )
  return command.pipe(Command.withDescription(forTerminal(description)), Command.withShortDescription(`${title}.`))
}

/** Tools without a noun (`svc_whoami`) are top-level commands. */
const ofNouns = endpoints.filter(({ listed }) => listed.name.split("_").length > 2)

const whatOf: Readonly<Record<string, string>> = {
  handle: "Availability of Handles.",
  identity: "Identities: create, read, delete.",
  card: "The A2A Card of an Identity.",
  email: "The Mailbox of an Identity.",
  thread: "Conversations in the Mailbox.",
  draft: "Drafts: list, read, change, send, delete.",
  attachment: "The text of an attachment of a message.",
  approval: "Messages that await approval: list, approve, reject.",
  tunnel: "The Tunnel of an Identity.",
  connector: "Accounts on other platforms: read, post, send direct messages.",
  limit: "Limits and their current use.",
  "sign-in": "Signing in at sites as the Identity.",
  token: "Identity tokens, with which an agent signs in to other services.",
  usage: "Mail, deliveries, Tunnel use and calls over time.",
  mail: "Whether outgoing mail is stopped.",
  "allowed-recipient": "Allowed Recipients.",
  "ai-disclosure": "The AI disclosure in every message.",
  event: "What happened.",
  webhook: "Webhooks and their deliveries.",
  vault: "Secrets. Values are never arguments.",
}

const byNoun = new Map<string, Array<BoundTool>>()
for (const tool of ofNouns) {
  const noun = nounOf(tool.listed.name)
  byNoun.set(noun, [...(byNoun.get(noun) ?? []), tool])
}

/** Commands by noun. */
export const commands = [...byNoun].map(([noun, of]) =>
  Command.make(noun).pipe(
    Command.withDescription(whatOf[noun] ?? `${noun.replaceAll("-", " ")}.`),
    Command.withSubcommands(of.map(commandOf) as [ReturnType<typeof commandOf>]),
  ),
)
