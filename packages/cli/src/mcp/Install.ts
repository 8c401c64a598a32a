/**
 * `svc mcp install`: adds this command as an MCP server to the configuration of a client. Other servers and settings of the file stay. The
 * file contains no key: the server uses the stored login, or `SVC_KEY` of its environment.
 */
import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { explained, Misused } from "../client/Connection.ts"
import { formatFlags, respond } from "../client/Format.ts"

interface Client {
  readonly title: string
  readonly format: "json" | "toml"
  /** The member that contains the servers. */
  readonly member: string
  readonly file: (user: boolean) => string
  readonly next: string
}

const home = (...parts: ReadonlyArray<string>) => path.join(os.homedir(), ...parts)

/** The folder of VS Code's settings of the user. */
const codeFolder = () =>
  process.platform === "win32"
    ? path.join(process.env["APPDATA"] || home("AppData", "Roaming"), "Code", "User")
    : process.platform === "darwin"
      ? home("Library", "Application Support", "Code", "User")
      : path.join(process.env["XDG_CONFIG_HOME"] || home(".config"), "Code", "User")

const clients: Readonly<Record<string, Client>> = {
  "claude-code": {
    title: "Claude Code",
    format: "json",
    member: "mcpServers",
    file: (user) => (user ? home(".claude.json") : ".mcp.json"),
    next: "Start claude, and check with /mcp.",
  },
  cursor: {
    title: "Cursor",
    format: "json",
    member: "mcpServers",
    file: (user) => (user ? home(".cursor", "mcp.json") : path.join(".cursor", "mcp.json")),
    next: "Open Cursor's settings, MCP, and enable the server.",
  },
  vscode: {
    title: "VS Code",
    format: "json",
    member: "servers",
    file: (user) => (user ? path.join(codeFolder(), "mcp.json") : path.join(".vscode", "mcp.json")),
    next: "Run the command MCP: List Servers, and start the server.",
  },
  codex: {
    title: "Codex",
    format: "toml",
    member: "mcp_servers",
    file: () => path.join(process.env["CODEX_HOME"] || home(".codex"), "config.toml"),
    next: "Start codex, and check with /mcp.",
  },
}

/** The clients that can be configured. */
export const names: ReadonlyArray<string> = Object.keys(clients)

interface Server {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns the file with the server in place; fails if the file is not JSON, for example because it has comments. */
const withJson = (client: Client, text: string, name: string, server: Server) => {
  let config: unknown
  try {
    config = text.trim() === "" ? {} : JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(config)) return undefined
  const servers = config[client.member] ?? {}
  if (!isObject(servers)) return undefined
  const entry = client.member === "servers" ? { type: "stdio", ...server } : server
  return `${JSON.stringify({ ...config, [client.member]: { ...servers, [name]: entry } }, null, 2)}\n`
}

/** Returns the file with the table of the server replaced or appended. A TOML basic string has the escapes of JSON. */
const withToml = (client: Client, text: string, name: string, server: Server) => {
  const header = `[${client.member}.${name}]`
  const table = `${header}\ncommand = ${JSON.stringify(server.command)}\nargs = ${JSON.stringify(server.args)}\n`
  const lines = text.split("\n")
  // The name of a table may be in quotes, and a comment may follow it.
  const start = lines.findIndex((line) => line.replace(/#.*$/, "").replaceAll(/["'\s]/g, "") === header)
  if (start < 0) return `${text === "" ? "" : `${text.replace(/\n*$/, "\n\n")}`}${table}`
  const rest = lines.slice(start + 1)
  const end = rest.findIndex((line) => /^\s*\[/.test(line))
  return [...lines.slice(0, start), table, ...(end < 0 ? [] : rest.slice(end))].join("\n")
}

/** Reads a file; a missing file is empty. */
const read = (file: string) => {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return ""
    throw error
  }
}

/**
 * Replaces the file in one step, so that it is never incomplete. A link stays a link, and the permissions stay, because the
 * file may contain credentials of the client.
 */
const replace = (file: string, text: string) => {
  mkdirSync(path.dirname(file), { recursive: true })
  const former = statSync(file, { throwIfNoEntry: false })
  const target = former === undefined ? file : realpathSync(file)
  const next = `${target}.new`
  writeFileSync(next, text, { mode: 0o600 })
  chmodSync(next, former === undefined ? 0o644 & ~process.umask() : former.mode & 0o777)
  renameSync(next, target)
}

export const serverOf = (options: {
  readonly api: string | undefined
  readonly tools: string | undefined
}): Server => ({
  command: "npx",
  args: [
    "-y",
    "@agent-identity/cli",
    "mcp",
    ...(options.api === undefined ? [] : ["--api", options.api]),
    ...(options.tools === undefined ? [] : ["--tools", options.tools]),
  ],
})

/** Writes the configuration of a client; returns the file and what to do next. */
export const install = Effect.fnUntraced(function* (
  name: string,
  options: { readonly user: boolean; readonly server: Server; readonly as: string },
) {
  const client = clients[name]
  if (client === undefined) {
    return yield* new Misused({
      message: `There is no client ${name}. The clients are ${names.join(", ")}.`,
    })
  }
  const file = path.resolve(client.file(options.user))
  return yield* Effect.try({
    try: () => {
      const text = read(file)
      const changed = (client.format === "json" ? withJson : withToml)(client, text, options.as, options.server)
      if (changed === undefined) throw new Error("it is not plain JSON")
      replace(file, changed)
      return { file, title: client.title, next: client.next }
    },
    catch: (error) =>
      new Misused({
        message: `${file} cannot be changed (${error instanceof Error ? error.message : String(error)}). Add the server by hand: ${JSON.stringify({ [options.as]: options.server })}`,
      }),
  })
})

export const command = Command.make(
  "install",
  {
    client: Argument.Literals("client", names).pipe(Argument.withDescription(`The client: ${names.join(", ")}.`)),
    user: Flag.Boolean("user").pipe(
      Flag.withDescription("Change the configuration of the user instead of this folder."),
      Flag.withDefault(false),
    ),
    as: Flag.String("name").pipe(Flag.withDescription("The name of the server."), Flag.withDefault("agent-identity")),
    tools: Flag.String("tools").pipe(
      Flag.withDescription("Only these toolsets, separated by commas, for example mail,vault."),
      Flag.optional,
    ),
    api: Flag.String("api").pipe(
      Flag.withDescription("Address of the API, if it is not that of the login."),
      Flag.optional,
    ),
    ...formatFlags,
  },
  Effect.fnUntraced(function* ({ client, user, as, tools, api, ...format }) {
    if (!/^[A-Za-z0-9_-]{1,50}$/.test(as)) {
      return yield* new Misused({ message: "--name may contain letters, digits, - and _ only." })
    }
    const server = serverOf({ api: Option.getOrUndefined(api), tools: Option.getOrUndefined(tools) })
    const { file, title, next } = yield* install(client, { user, server, as })
    yield* respond(format, { client, file, name: as }, () => `${title} has the server ${as} (${file}). ${next}`)
  }, explained),
).pipe(Command.withDescription("Add this MCP server to the configuration of a client."))
