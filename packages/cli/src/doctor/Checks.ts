/** The checks of `svc doctor`: machine, settings, database, certificates, DNS and service. */
import { lookup } from "node:dns/promises"
import { connect } from "node:net"
import { Effect, Option, Redacted, Schema } from "effect"
import { apiOf, call } from "../client/Connection.ts"
import * as Login from "../client/Login.ts"
import { load, type Settings } from "../serve/Settings.ts"
import * as CertificateChecks from "./CertificateChecks.ts"
import * as Configuration from "./Configuration.ts"
import * as DaneResolver from "./DaneResolver.ts"
import * as Discovery from "./Discovery.ts"
import * as Dns from "./Dns.ts"
import * as Finding from "./Finding.ts"
import * as Listeners from "./Listeners.ts"
import * as Machine from "./Machine.ts"
import * as MailNames from "./MailNames.ts"
import * as Outgoing from "./Outgoing.ts"
import * as Store from "./Store.ts"

const found = Finding.of("service")

const names = Effect.fnUntraced(function* ({ tunnelDomain }: Settings) {
  const name = `svc-doctor.${tunnelDomain}`
  const resolved = yield* Effect.option(Effect.tryPromise(() => lookup(name)))
  return Option.isSome(resolved)
    ? found("tunnel names", "ok", `${name} is ${resolved.value.address}`)
    : found(
        "tunnel names",
        "warn",
        `${name} does not resolve on this machine`,
        tunnelDomain.endsWith("localhost")
          ? "Browsers and curl resolve it themselves; other programs can connect to 127.0.0.1 and send the name as `Host`."
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
      `${api} does not report that it is healthy`,
      "Start the service (`svc serve`), or set SVC_API_URL to its address.",
    )
  }
  const ailing = report.value.components.filter(({ status }) => status !== "pass")
  return ailing.length === 0
    ? found("service", "ok", api)
    : found(
        "service",
        "warn",
        `${api}: ${ailing.map(({ name, detail }) => `${name} (${detail ?? "no detail"})`).join(", ")}`,
        "Check the service's log for these components.",
      )
})

const login = Effect.fnUntraced(function* (api: string) {
  const environment = process.env["SVC_KEY"]
  const stored = yield* Login.load
  const key =
    environment !== undefined && environment !== ""
      ? Option.some(Redacted.make(environment))
      : // A stored key is only sent to the service that issued it.
        Option.flatMap(stored, (one) => (one.api === api ? Option.some(one.key) : Option.none()))
  if (Option.isNone(key)) return found("login", "warn", "not logged in", "Run `svc login`, or set SVC_KEY.")
  const who = yield* Effect.result(call(api, "GET", "/api/auth/whoami", { key: key.value }))
  if (who._tag === "Success") return found("login", "ok", environment ? "SVC_KEY" : Login.file())
  return who.failure._tag === "Refused"
    ? found("login", "fail", who.failure.message, "Run `svc login` again, or correct SVC_KEY.")
    : found("login", "warn", "not checked, since the service is unreachable", "Start the service first.")
})

const patienceMillis = 5000

/** Returns whether a port on another machine accepts connections. */
const acceptsConnections = (host: string, port: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect({ host, port, timeout: patienceMillis })
    const end = (is: boolean) => {
      socket.destroy()
      resume(Effect.succeed(is))
    }
    socket.once("connect", () => end(true))
    socket.once("error", () => end(false))
    socket.once("timeout", () => end(false))
  })

/** Checks from another machine, with the same settings, which public ports are reachable. */
const outside = Effect.fnUntraced(function* (settings: Settings) {
  const { hostname, port, protocol } = new URL(settings.baseUrl)
  const places = [
    ["API", hostname, Number(port || (protocol === "https:" ? 443 : 80)), "SVC_BASE_URL"],
    ...settings.mailServers.map((server) => ["mail", server, 25, "SVC_MX"] as const),
    ["tunnels", `connect.${settings.tunnelDomain}`, 443, "SVC_TUNNEL_DOMAIN"],
    ["a tunnel's port", `connect.${settings.tunnelDomain}`, settings.tunnelPorts.first, "SVC_EDGE_TCP_PORTS"],
  ] as const
  return yield* Effect.forEach(
    places,
    ([what, host, at, setting]) =>
      Effect.map(acceptsConnections(host, at), (is) =>
        is
          ? found(what, "ok", `${host}:${at} answers`)
          : found(
              what,
              "fail",
              `${host}:${at} is unreachable from here`,
              `Open the port in every firewall on the way, or correct ${setting}.`,
            ),
      ),
    { concurrency: 4 },
  )
})

const published = (settings: Settings, dns: Dns.Ask) =>
  Effect.map(Effect.all([Dns.findings(settings, dns), MailNames.findings(settings, dns)]), (all) => all.flat())

export interface Options {
  readonly api: Option.Option<string>
  readonly only: ReadonlySet<Finding.Group>
  /** Name server to query instead of the machine's resolvers. */
  readonly resolver: string | undefined
  /** The command runs on another machine; only DNS and reachability can be checked. */
  readonly fromOutside: boolean
}

/** Runs all checks and returns the findings in order of importance. */
export const findings = Effect.fnUntraced(function* ({ api: flag, only, resolver, fromOutside }: Options) {
  const settings = yield* Effect.result(load)
  const dns = Dns.asking(resolver)
  if (fromOutside) {
    if (settings._tag === "Failure") return [Configuration.configuration(settings)]
    return [
      ...(yield* published(settings.success, dns)),
      ...(yield* outside(settings.success)),
      yield* Discovery.finding(settings.success.baseUrl, settings.success),
    ]
  }
  const wants = (group: Finding.Group) => only.size === 0 || only.has(group)
  const api = yield* apiOf(flag)
  const up = yield* service(api)
  const isUp = up.status !== "warn" || up.detail.startsWith(`${api}:`)
  const all: Array<Finding.Finding> = [
    yield* Machine.node,
    Configuration.configuration(settings),
    ...(yield* Configuration.misspelt),
  ]
  if (settings._tag === "Success") {
    const given = settings.success
    all.push(
      yield* Machine.data(given),
      yield* Machine.memory,
      ...(yield* Machine.openFiles(given)),
      yield* Configuration.masterKey(given),
      ...Configuration.secretFiles(yield* Configuration.knownNames),
      ...Configuration.exposure(given),
      ...Listeners.collisions(given),
      ...(yield* Configuration.sites(given)),
    )
    if (wants("store")) all.push(...(yield* Store.findings(given)))
    if (wants("certificates")) all.push(...(yield* CertificateChecks.findings(given)))
    if (wants("dns")) all.push(...(yield* published(given, dns)))
    if (wants("mail")) all.push(...(yield* Outgoing.findings(given)), ...(yield* DaneResolver.findings(given)))
    if (wants("service")) {
      all.push(yield* Listeners.taken(given, isUp), yield* names(given))
      if (isUp) all.push(yield* Discovery.finding(api, given))
    }
  }
  return [...all, up, yield* login(api)].filter(({ group }) => wants(group))
})
