/** What `svc doctor` looks at: this machine, the configuration, the service. Each check says what to do about it. */
import { lookup } from "node:dns/promises"
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs"
import { createServer } from "node:net"
import * as path from "node:path"
import { Effect, Option, Redacted, Schema } from "effect"
import { apiOf, call } from "../client/Connection.ts"
import * as Login from "../client/Login.ts"
import { load, type Settings } from "../serve/Settings.ts"

export type Status = "ok" | "warn" | "fail"

export interface Finding {
  readonly name: string
  readonly status: Status
  readonly detail: string
  /** What to do about it; empty where there is nothing to do. */
  readonly remedy: string
}

const found = (name: string, status: Status, detail: string, remedy = ""): Finding => ({ name, status, detail, remedy })

const oldestNode = 24

const node = Effect.sync(() => {
  const major = Number(process.versions.node.split(".")[0])
  return major >= oldestNode
    ? found("node", "ok", `${process.version} on ${process.platform}-${process.arch}`)
    : found("node", "fail", `${process.version}`, "Start it with `npm run -s svc -- …`, which brings its own Node.")
})

/** The nearest directory above that exists. */
const standing = (directory: string): string =>
  existsSync(directory) ? directory : standing(path.dirname(path.resolve(directory)))

const data = ({ dataDirectory, databaseUrl }: Settings) =>
  Effect.sync(() => {
    if (Option.isSome(databaseUrl)) return found("data", "ok", "the database of DATABASE_URL")
    const place = standing(dataDirectory)
    try {
      accessSync(place, constants.W_OK)
    } catch {
      return found("data", "fail", `${place} cannot be written to`, "Set SVC_DATA_DIR to a directory of your own.")
    }
    const { bavail, bsize } = statfsSync(place)
    const gibibytes = (bavail * bsize) / 1024 ** 3
    const told = `${path.resolve(dataDirectory)}, ${gibibytes.toFixed(1)} GiB free`
    if (gibibytes < 0.2) return found("data", "fail", told, "Make room, or set SVC_DATA_DIR to another disk.")
    return gibibytes < 2 ? found("data", "warn", told, "Make room before mail fills it.") : found("data", "ok", told)
  })

const masterKey = ({ dataDirectory, masterKey: given, databaseUrl }: Settings) =>
  Effect.sync(() => {
    const file = path.join(dataDirectory, "master.key")
    if (Option.isSome(given)) return found("master key", "ok", "SVC_MASTER_KEY")
    if (existsSync(file)) {
      const open = process.platform !== "win32" && (statSync(file).mode & 0o077) !== 0
      return open
        ? found("master key", "warn", `${file} can be read by others`, `chmod 600 ${file}`)
        : found("master key", "ok", `${file}: keep a copy where the data is not`)
    }
    const hasData = Option.isSome(databaseUrl) || existsSync(path.join(dataDirectory, "postgres"))
    return hasData
      ? found(
          "master key",
          "fail",
          `${file} is missing beside existing data`,
          "Put the file back, or set SVC_MASTER_KEY to its key: nothing that is sealed can be opened without it.",
        )
      : found("master key", "ok", "made at the first start")
  })

/** Whether something listens: it may well be the service. */
const isFree = (host: string, port: number) =>
  Effect.callback<boolean>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(false)))
    server.listen(port, host, () => server.close(() => resume(Effect.succeed(true))))
  })

const ports = Effect.fnUntraced(function* (settings: Settings, running: boolean) {
  const wanted = [
    ["SVC_HTTP_PORT", settings.httpPort],
    ["SVC_SMTP_PORT", settings.smtpPort],
    ["SVC_IMAP_PORT", settings.imapPort],
    ["SVC_IMAPS_PORT", settings.imapsPort],
    ["SVC_EDGE_PORT", settings.edgePort],
  ] as const
  const taken: Array<string> = []
  for (const [name, port] of wanted) {
    if (!(yield* isFree(settings.host, port))) taken.push(`${name} ${port}`)
  }
  if (taken.length === 0) return found("ports", "ok", wanted.map(([, port]) => port).join(", "))
  return running
    ? found("ports", "ok", `${taken.join(", ")}: the service listens`)
    : found("ports", "fail", `someone else listens on ${taken.join(", ")}`, "End that program, or set another port.")
})

const names = Effect.fnUntraced(function* ({ tunnelDomain }: Settings) {
  const name = `svc-doctor.${tunnelDomain}`
  const resolved = yield* Effect.option(Effect.tryPromise(() => lookup(name)))
  return Option.isSome(resolved)
    ? found("tunnel names", "ok", `${name} is ${resolved.value.address}`)
    : found(
        "tunnel names",
        "warn",
        `${name} does not resolve here`,
        tunnelDomain.endsWith("localhost")
          ? "Browsers and curl know it; other programs connect to 127.0.0.1 and send the name as `Host`."
          : `Point *.${tunnelDomain} at the edges.`,
      )
})

const Report = Schema.Struct({
  status: Schema.String,
  components: Schema.Array(
    Schema.Struct({ name: Schema.String, status: Schema.String, detail: Schema.NullOr(Schema.String) }),
  ),
})

const service = Effect.fnUntraced(function* (api: string) {
  const answer = yield* Effect.option(call(api, "GET", "/api/healthz"))
  const report = Option.flatMap(answer, Schema.decodeUnknownOption(Report))
  if (Option.isNone(report)) {
    return found(
      "service",
      "warn",
      `${api} does not answer as healthy`,
      "Start it with `npm start`, or set SVC_API_URL.",
    )
  }
  const ailing = report.value.components.filter(({ status }) => status !== "pass")
  return ailing.length === 0
    ? found("service", "ok", api)
    : found(
        "service",
        "warn",
        `${api}: ${ailing.map(({ name, detail }) => `${name} (${detail ?? "no detail"})`).join(", ")}`,
        "See its log for these parts.",
      )
})

const login = Effect.fnUntraced(function* (api: string) {
  const environment = process.env["SVC_KEY"]
  const stored = yield* Login.load
  const key =
    environment !== undefined && environment !== ""
      ? Option.some(Redacted.make(environment))
      : Option.map(stored, (one) => one.key)
  if (Option.isNone(key)) return found("login", "warn", "there is none", "Run `svc login`, or set SVC_KEY.")
  const who = yield* Effect.result(call(api, "GET", "/api/auth/whoami", { key: key.value }))
  if (who._tag === "Success") return found("login", "ok", environment ? "SVC_KEY" : Login.file())
  return who.failure._tag === "Refused"
    ? found("login", "fail", who.failure.message, "Run `svc login` again, or correct SVC_KEY.")
    : found("login", "warn", "cannot be tried while the service is out of reach", "Start the service first.")
})

/** Every finding, in the order in which they matter. */
export const findings = Effect.fnUntraced(function* (flag: Option.Option<string>) {
  const api = yield* apiOf(flag)
  const settings = yield* Effect.result(load)
  const up = yield* service(api)
  const ofSettings =
    settings._tag === "Failure"
      ? [found("configuration", "fail", settings.failure.message, "Correct the setting; the README lists them all.")]
      : [
          found("configuration", "ok", settings.success.environment),
          yield* data(settings.success),
          yield* masterKey(settings.success),
          yield* ports(settings.success, up.status !== "warn" || up.detail.startsWith(`${api}:`)),
          yield* names(settings.success),
        ]
  return [yield* node, ...ofSettings, up, yield* login(api)]
})
