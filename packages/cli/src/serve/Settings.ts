/**
 * All settings of the service. Only this module reads them from the environment; `docs/settings.md` lists them.
 * Development is the default and needs none. Production does not start without the settings that only its operator can
 * know.
 */
import { isIP } from "node:net"
import type { Environment } from "@svc/domain/Addresses"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import { FilterTime } from "@svc/domain/Timestamp"
import type { Networks } from "@svc/api/limits/ClientAddress"
import * as RelayUrl from "@svc/mail-gateway/mail/sending/RelayUrl"
import ipaddr from "ipaddr.js"
import { Config, ConfigProvider, Effect, Option, Redacted, Schema } from "effect"
import { refuse, secret } from "./Secrets.ts"

/** The settings are invalid; `message` says what to set. */
export class SettingsInvalid extends Schema.TaggedError<SettingsInvalid>()("SettingsInvalid", {
  message: Schema.String,
}) {}

const text = (name: string) => Config.option(Config.NonEmptyString(name))
const integer = (name: string, least: number, most: number, expected: string) =>
  Config.schema(
    Schema.Int.check(Schema.makeFilter((value: number) => value >= least && value <= most, { expected })),
    name,
  )
const portOf = (name: string) => integer(name, 0, 65_535, "a port from 0 to 65535")
const port = (name: string, fallback: number) => portOf(name).pipe(Config.withDefault(fallback))
const atLeast = (name: string, least: 0 | 1) =>
  integer(name, least, Number.MAX_SAFE_INTEGER, `an integer of ${least} or more`)
const count = (name: string, fallback: number) => atLeast(name, 0).pipe(Config.withDefault(fallback))
const size = (name: string, fallback: number) => atLeast(name, 1).pipe(Config.withDefault(fallback))
const share = (name: string, fallback: number) =>
  Config.schema(
    Schema.Finite.check(Schema.makeFilter((value) => value >= 0 && value <= 1, { expected: "a number from 0 to 1" })),
    name,
  ).pipe(Config.withDefault(fallback))

const checked = (name: string, passes: (value: string) => boolean, expected: string) =>
  Config.option(Config.schema(Schema.String.check(Schema.makeFilter(passes, { expected })), name))
const isUrl = (value: string) => /^https?:\/\/[^\s]+$/.test(value) && URL.canParse(value)
const url = (name: string) => checked(name, isUrl, "an http or https address")
const isBase = (value: string) => isUrl(value) && !/[?#]/.test(value)
const base = (name: string) => checked(name, isBase, "an address such as https://svc.example.org, without a query")
const isAddress = (value: string) => AddrSpec.parse(value)._tag === "Address"
const address = (name: string) => checked(name, isAddress, "one mail address such as ada@example.org")
const isDomain = (value: string) => isAddress(`a@${value}`)
/** A domain, in lower case and A-labels. */
const domain = (name: string) =>
  checked(name, isDomain, "a domain such as mail.example.org").pipe(
    Config.map(
      Option.map((value) => {
        const parsed = AddrSpec.parse(`a@${value}`)
        return parsed._tag === "Address" ? parsed.domain : value
      }),
    ),
  )

const items = (list: string) =>
  list
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "")
/** A list of domains, empty by default. */
const domains = (name: string) =>
  checked(name, (list) => items(list).every(isDomain), "domains such as mail.example.org, separated by commas").pipe(
    Config.map((list) => items(Option.getOrElse(list, () => ""))),
  )

/** Settings of which all are set or none, because a missing one would turn off what the others ask for. */
const together = <Member extends string>(names: Readonly<Record<Member, string>>) => {
  const members = Object.entries<string>(names)
  return Config.all(members.map(([, name]) => text(name))).pipe(
    Config.mapEffect((found) => {
      const missing = members.filter((_, at) => Option.isNone(found[at]!)).map(([, name]) => name)
      if (missing.length > 0 && missing.length < members.length) {
        return refuse(`${missing.join(" and ")} must be set too, or none of ${Object.values(names).join(", ")}.`)
      }
      // The entries have exactly the names of the members.
      const values = (all: ReadonlyArray<string>) =>
        Object.fromEntries(members.map(([member], at) => [member, all[at]!])) as Record<Member, string>
      return Effect.succeed(Option.map(Option.all(found), values))
    }),
  )
}

/** The configuration of all settings. */
export const settingsConfig = {
  environment: Config.option(Config.Literals(["development", "production"], "SVC_ENV")),
  dataDirectory: Config.String("SVC_DATA_DIR").pipe(Config.withDefault(".data")),
  databaseUrl: secret("DATABASE_URL"),
  baseUrl: base("SVC_BASE_URL"),
  profileBase: base("SVC_PROFILE_BASE"),
  mailDomain: domain("SVC_MAIL_DOMAIN"),
  tunnelDomain: domain("SVC_TUNNEL_DOMAIN"),
  masterKey: secret("SVC_MASTER_KEY"),
  host: Config.String("SVC_HOST").pipe(Config.withDefault("127.0.0.1")),
  httpPort: port("SVC_HTTP_PORT", 8080),
  smtpPort: port("SVC_SMTP_PORT", 2525),
  opsHost: Config.String("SVC_OPS_HOST").pipe(Config.withDefault("127.0.0.1")),
  opsPort: Config.option(portOf("SVC_OPS_PORT")),
  shutdownDelay: count("SVC_SHUTDOWN_DELAY", 0),
  tracedShare: share("OTEL_TRACES_SAMPLER_ARG", 0.01),
  imapPort: port("SVC_IMAP_PORT", 1143),
  imapsPort: port("SVC_IMAPS_PORT", 1993),
  submissionPort: port("SVC_SUBMISSION_PORT", 1587),
  submissionsPort: port("SVC_SUBMISSIONS_PORT", 1465),
  imapTls: together({ cert: "SVC_IMAP_TLS_CERT", key: "SVC_IMAP_TLS_KEY" }),
  imapHost: text("SVC_IMAP_HOST"),
  imapSessions: Config.all({
    inAll: size("SVC_IMAP_SESSIONS", 10_000),
    perClient: size("SVC_IMAP_CLIENT_SESSIONS", 500),
    perMailbox: size("SVC_IMAP_MAILBOX_SESSIONS", 100),
  }),
  edgePort: port("SVC_EDGE_PORT", 8081),
  edgeTcpPorts: Config.String("SVC_EDGE_TCP_PORTS").pipe(Config.withDefault("20000-20999")),
  runnerHost: Config.String("SVC_RUNNER_HOST").pipe(Config.withDefault("127.0.0.1")),
  runnerPort: port("SVC_RUNNER_PORT", 0),
  runnerTls: together({ ca: "SVC_RUNNER_TLS_CA", cert: "SVC_RUNNER_TLS_CERT", key: "SVC_RUNNER_TLS_KEY" }),
  smtpTls: together({ cert: "SVC_SMTP_TLS_CERT", key: "SVC_SMTP_TLS_KEY" }),
  edgeTls: together({ cert: "SVC_EDGE_TLS_CERT", key: "SVC_EDGE_TLS_KEY" }),
  edgeAddress: text("SVC_EDGE_ADDRESS"),
  edgeSharesPort: Config.Boolean("SVC_EDGE_SHARE_PORT").pipe(Config.withDefault(false)),
  edgeClientConnections: size("SVC_EDGE_CLIENT_CONNECTIONS", 4_096),
  edgeConnections: size("SVC_EDGE_CONNECTIONS", 65_536),
  proxyProtocolFrom: Config.String("SVC_PROXY_PROTOCOL_FROM").pipe(Config.withDefault("")),
  blockLists: domains("SVC_DNSBL"),
  greylisting: Config.Boolean("SVC_GREYLIST").pipe(Config.withDefault(false)),
  arcKey: secret("SVC_ARC_KEY"),
  arcSelector: Config.String("SVC_ARC_SELECTOR").pipe(Config.withDefault("arc")),
  mailServers: domains("SVC_MX"),
  mtaSts: Config.Literals(["none", "testing", "enforce"], "SVC_MTA_STS").pipe(Config.withDefault("testing" as const)),
  drainSeconds: Config.option(atLeast("SVC_DRAIN", 0)),
  relayUrl: secret("SVC_SMTP_RELAY_URL"),
  mailDirect: Config.Boolean("SVC_MAIL_DIRECT").pipe(Config.withDefault(false)),
  mailDirectPort: port("SVC_MAIL_DIRECT_PORT", 25),
  daneResolver: text("SVC_DANE_RESOLVER"),
  systemFrom: address("SVC_SYSTEM_FROM"),
  postmasterTo: address("SVC_POSTMASTER_TO"),
  contactTo: address("SVC_CONTACT_TO"),
  signup: Config.Literals(["open", "invite", "closed"], "SVC_SIGNUP").pipe(Config.withDefault("open" as const)),
  inviteCodes: secret("SVC_INVITE_CODES"),
  tosVersion: Config.String("SVC_TOS_VERSION").pipe(Config.withDefault("2026-11-01")),
  tosUrl: url("SVC_TOS_URL"),
  tosEffectiveAt: Config.option(Config.schema(FilterTime, "SVC_TOS_EFFECTIVE_AT")),
  brand: Config.String("SVC_BRAND").pipe(Config.withDefault("agentidentity")),
  identityQuota: count("SVC_IDENTITY_QUOTA", 25),
  mailboxBytes: size("SVC_MAILBOX_BYTES", 1024 * 1024 * 1024),
  mailHourly: count("SVC_LIMIT_MAIL_HOURLY", 100),
  messageBytes: size("SVC_MESSAGE_BYTES", 25 * 1024 * 1024),
  mcpOrigins: Config.String("SVC_MCP_ORIGINS").pipe(Config.withDefault("")),
  trustedProxies: Config.String("SVC_TRUSTED_PROXIES").pipe(Config.withDefault("")),
  forwardedHeader: Config.String("SVC_FORWARDED_HEADER").pipe(Config.withDefault("X-Forwarded-For")),
  connectorDisclosure: Config.String("SVC_CONNECTOR_DISCLOSURE").pipe(
    Config.withDefault("This account is automated: an AI agent writes here."),
  ),
  pageViewCeiling: count("SVC_PAGE_VIEW_CEILING", 10_000),
  auditDays: integer("SVC_AUDIT_DAYS", 30, 3_650, "a number of days from 30 to 3650").pipe(Config.withDefault(365)),
  auditAddresses: Config.Literals(["full", "network", "none"], "SVC_AUDIT_ADDRESSES").pipe(
    Config.withDefault("full" as const),
  ),
  limits: Config.all({
    calls: count("SVC_LIMIT_CALLS", 600),
    identity_create: count("SVC_LIMIT_IDENTITY_CREATE", 10),
    handle_check: count("SVC_LIMIT_HANDLE_CHECK", 60),
    profile: count("SVC_LIMIT_PROFILE", 120),
    hits: count("SVC_LIMIT_HITS", 120),
    contact: count("SVC_LIMIT_CONTACT", 5),
    magic_link: count("SVC_LIMIT_MAGIC_LINK", 5),
    device: count("SVC_LIMIT_DEVICE", 10),
    oauth_register: count("SVC_LIMIT_OAUTH_REGISTER", 60),
    oauth_authorize: count("SVC_LIMIT_OAUTH_AUTHORIZE", 30),
    oauth_token: count("SVC_LIMIT_OAUTH_TOKEN", 600),
    oauth_token_failed: count("SVC_LIMIT_OAUTH_TOKEN_FAILED", 60),
    oauth_document: count("SVC_LIMIT_OAUTH_DOCUMENT", 10),
    streams_credential: count("SVC_LIMIT_STREAMS_CREDENTIAL", 100),
    streams_org: count("SVC_LIMIT_STREAMS_ORG", 500),
    tunnel_transfer: count("SVC_LIMIT_TUNNEL_TRANSFER", 10 * 1024 ** 3),
  }),
}

const raw = Config.all(settingsConfig)

const withoutSlash = (url: string) => url.replace(/\/+$/, "")
const loopback = (host: string) => host === "127.0.0.1" || host === "::1" || host === "localhost"

const portRange = (
  range: string,
): Effect.Effect<{ readonly first: number; readonly last: number }, SettingsInvalid> => {
  const [, first, last] = /^(\d{1,5})-(\d{1,5})$/.exec(range) ?? []
  const ports = { first: Number(first), last: Number(last) }
  return ports.first >= 1 && ports.last <= 65535 && ports.first <= ports.last
    ? Effect.succeed(ports)
    : Effect.fail(
        new SettingsInvalid({ message: `SVC_EDGE_TCP_PORTS must be a range of ports (20000-20999), not ${range}` }),
      )
}

/** Parses the address of a name server, with an optional port. */
const nameServer = (value: string) => {
  const [, bracketed, plain, port = "53"] = /^(?:\[(.+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(value) ?? []
  const host = isIP(value) === 0 ? (bracketed ?? plain ?? "") : value
  return isIP(host) !== 0 && Number(port) > 0 && Number(port) < 65_536
    ? Effect.succeed({ host, port: Number(port) })
    : Effect.fail(
        new SettingsInvalid({ message: `SVC_DANE_RESOLVER must be the address of a name server, not ${value}` }),
      )
}

const networks = (name: string, list: string): Effect.Effect<Networks, SettingsInvalid> =>
  Effect.forEach(items(list), (one) =>
    Effect.try({
      try: () => ipaddr.parseCIDR(one.includes("/") ? one : `${one}/${one.includes(":") ? 128 : 32}`),
      catch: () =>
        new SettingsInvalid({ message: `${name} contains ${one}, which is neither an address nor a network` }),
    }),
  )

/** Turns the library's report about a setting into a sentence. */
const wordsOf = (report: string): string => {
  const [, expected, name] = /^(?:SchemaError\()?(.*?)\s+at \["([^"]+)"\]\)?$/s.exec(report) ?? []
  const words = expected?.replace(/^E/, "e").replace("a string representing a finite number", "a number")
  return name === undefined ? report : `${name} is not valid: ${words}.`
}

const isDatabaseUrl = (text: string): boolean => URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol)

/** The ports that the service listens on. */
export const portsOf = (settings: {
  readonly opsPort: Option.Option<number>
  readonly httpPort: number
  readonly smtpPort: number
  readonly imapPort: number
  readonly imapsPort: number
  readonly submissionPort: number
  readonly submissionsPort: number
  readonly edgePort: number
  readonly runnerPort: number
}) => ({
  SVC_HTTP_PORT: settings.httpPort,
  SVC_SMTP_PORT: settings.smtpPort,
  SVC_IMAP_PORT: settings.imapPort,
  SVC_IMAPS_PORT: settings.imapsPort,
  SVC_SUBMISSION_PORT: settings.submissionPort,
  SVC_SUBMISSIONS_PORT: settings.submissionsPort,
  SVC_EDGE_PORT: settings.edgePort,
  SVC_RUNNER_PORT: settings.runnerPort,
  ...Option.match(settings.opsPort, { onNone: () => ({}), onSome: (SVC_OPS_PORT) => ({ SVC_OPS_PORT }) }),
})

export const load = Effect.gen(function* () {
  const settings = yield* Effect.mapError(
    raw,
    ({ cause, message }) =>
      new SettingsInvalid({ message: cause._tag === "SourceError" ? cause.message : wordsOf(message) }),
  )
  if (Option.isSome(settings.databaseUrl) && !isDatabaseUrl(Redacted.value(settings.databaseUrl.value))) {
    return yield* new SettingsInvalid({
      message: "DATABASE_URL must be a PostgreSQL address: postgres://user:password@host:5432/database.",
    })
  }
  const environment: Environment = Option.getOrElse(settings.environment, () => "development" as const)
  if (!loopback(settings.opsHost) && Option.isNone(settings.environment)) {
    return yield* new SettingsInvalid({
      message:
        "SVC_OPS_HOST exposes probes and metrics to the network: set SVC_ENV=production, or SVC_ENV=development to confirm.",
    })
  }
  if (!loopback(settings.host) && Option.isNone(settings.environment)) {
    return yield* new SettingsInvalid({
      message:
        "SVC_HOST exposes the service to the network: set SVC_ENV=production, or SVC_ENV=development to confirm.",
    })
  }
  if (!loopback(settings.runnerHost) && Option.isNone(settings.runnerTls)) {
    return yield* new SettingsInvalid({
      message:
        "SVC_RUNNER_HOST exposes the cluster's port to the network: set SVC_RUNNER_TLS_CA, SVC_RUNNER_TLS_CERT and SVC_RUNNER_TLS_KEY.",
    })
  }
  if (environment === "production") {
    const missing = Object.entries({
      SVC_MASTER_KEY: settings.masterKey,
      SVC_BASE_URL: settings.baseUrl,
      SVC_MAIL_DOMAIN: settings.mailDomain,
      SVC_TUNNEL_DOMAIN: settings.tunnelDomain,
      "SVC_SMTP_RELAY_URL (or SVC_MAIL_DIRECT=true)": settings.mailDirect ? Option.some(true) : settings.relayUrl,
    }).flatMap(([name, value]) => (value._tag === "None" ? [name] : []))
    if (missing.length > 0) {
      return yield* new SettingsInvalid({ message: `Production needs ${missing.join(", ")}.` })
    }
  }
  const baseUrl = withoutSlash(Option.getOrElse(settings.baseUrl, () => `http://localhost:${settings.httpPort}`))
  const mailDomain = Option.getOrElse(settings.mailDomain, () => "mail.localhost")
  const operator = Option.getOrElse(settings.postmasterTo, () => "").toLowerCase()
  if ([`postmaster@${mailDomain}`, `abuse@${mailDomain}`].includes(operator)) {
    return yield* new SettingsInvalid({
      message: `SVC_POSTMASTER_TO must be another address than ${operator}, whose mail it receives: each message would be forwarded in a loop.`,
    })
  }
  const relay = yield* Effect.transposeOption(Option.map(settings.relayUrl, RelayUrl.parse)).pipe(
    Effect.mapError(({ message }) => new SettingsInvalid({ message })),
  )
  const mcpOrigins = items(settings.mcpOrigins)
  const noOrigin = mcpOrigins.find((one) => one !== "*" && URL.parse(one)?.origin !== one)
  if (noOrigin !== undefined) {
    return yield* new SettingsInvalid({
      message: `SVC_MCP_ORIGINS must be * or origins such as https://app.example.com, separated by commas, not ${noOrigin}.`,
    })
  }
  const inviteCodes = items(Option.match(settings.inviteCodes, { onNone: () => "", onSome: Redacted.value }))
  if (settings.signup === "invite" && inviteCodes.length === 0) {
    return yield* new SettingsInvalid({
      message: "SVC_SIGNUP=invite needs SVC_INVITE_CODES. If nobody may sign up, set SVC_SIGNUP=closed.",
    })
  }
  const provider = yield* ConfigProvider.ConfigProvider
  return {
    ...settings,
    relay,
    environment,
    mcpOrigins,
    connectors: {
      disclosure: settings.connectorDisclosure,
      // Each platform defines its own settings.
      setting: (name: string): string | undefined =>
        Option.getOrUndefined(Effect.runSync(Effect.option(Config.NonEmptyString(name).parse(provider)))),
    },
    baseUrl,
    profileBase: withoutSlash(Option.getOrElse(settings.profileBase, () => baseUrl)),
    mailDomain,
    tunnelDomain: Option.getOrElse(settings.tunnelDomain, () => "tunnel.localhost"),
    systemFrom: Option.getOrElse(settings.systemFrom, () => `no-reply@${mailDomain}`),
    trustedProxies: {
      networks: yield* networks("SVC_TRUSTED_PROXIES", settings.trustedProxies),
      header: settings.forwardedHeader.trim().toLowerCase(),
    },
    proxyProtocolFrom: yield* networks("SVC_PROXY_PROTOCOL_FROM", settings.proxyProtocolFrom),
    daneResolver: yield* Effect.transposeOption(Option.map(settings.daneResolver, nameServer)),
    mailServers: settings.mailServers.length === 0 ? [mailDomain] : settings.mailServers,
    tunnelPorts: yield* portRange(settings.edgeTcpPorts),
    inviteCodes: new Set(inviteCodes),
  }
})

export type Settings = Effect.Success<typeof load>

/** Returns the certificate that mail programs get from IMAP and submission. */
export const programTls = ({ imapTls, smtpTls }: Pick<Settings, "imapTls" | "smtpTls">) =>
  Option.orElse(imapTls, () => smtpTls)
