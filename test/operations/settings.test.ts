/** Every setting reaches the member of its name, has the documented default, and is published where it should be. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { addresses } from "@svc/cli/serve/Serve"
import { load, settingsConfig, type Settings } from "@svc/cli/serve/Settings"
import { Addresses } from "@svc/domain/Addresses"
import { type Config, ConfigProvider, Effect, Option, Redacted } from "effect"
import { describe, expect, it } from "vitest"

const from = (values: Readonly<Record<string, string>>) => ConfigProvider.layer(ConfigProvider.fromUnknown(values))
const settings = (values: Readonly<Record<string, string>>): Promise<Settings> =>
  Effect.runPromise(Effect.provide(load, from(values)))

/** Returns the variables that a setting reads. */
const variables = async (config: Config.Config<unknown>) => {
  const names = new Set<string>()
  const listening = ConfigProvider.make((place) =>
    Effect.sync(() => {
      names.add(place.map(String).join("_"))
      return undefined
    }),
  )
  await Effect.runPromise(Effect.ignore(config.parse(listening)))
  return [...names].filter((name) => !name.endsWith("_FILE"))
}

/** Settings whose variable is not their name in capital letters. */
const otherNames: Readonly<Record<string, ReadonlyArray<string>>> = {
  environment: ["SVC_ENV"],
  dataDirectory: ["SVC_DATA_DIR"],
  databaseUrl: ["DATABASE_URL"],
  tracedShare: ["OTEL_TRACES_SAMPLER_ARG"],
  imapTls: ["SVC_IMAP_TLS_CERT", "SVC_IMAP_TLS_KEY"],
  runnerTls: ["SVC_RUNNER_TLS_CA", "SVC_RUNNER_TLS_CERT", "SVC_RUNNER_TLS_KEY"],
  smtpTls: ["SVC_SMTP_TLS_CERT", "SVC_SMTP_TLS_KEY"],
  edgeTls: ["SVC_EDGE_TLS_CERT", "SVC_EDGE_TLS_KEY"],
  imapSessions: ["SVC_IMAP_SESSIONS", "SVC_IMAP_CLIENT_SESSIONS", "SVC_IMAP_MAILBOX_SESSIONS"],
  edgeSharesPort: ["SVC_EDGE_SHARE_PORT"],
  blockLists: ["SVC_DNSBL"],
  greylisting: ["SVC_GREYLIST"],
  mailServers: ["SVC_MX"],
  drainSeconds: ["SVC_DRAIN"],
  relayUrl: ["SVC_SMTP_RELAY_URL"],
  mailHourly: ["SVC_LIMIT_MAIL_HOURLY"],
}
const capitals = (name: string) => `SVC_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
const own = Object.entries(settingsConfig).filter(([name]) => name !== "limits")

describe("A setting", () => {
  it.each(own)("%s is read from the variable of its name", async (name, config) => {
    expect(await variables(config as Config.Config<unknown>)).toEqual(otherNames[name] ?? [capitals(name)])
  })

  it("of a limit is read from the variable of its name", async () => {
    const names = await variables(settingsConfig.limits as Config.Config<unknown>)
    const values = Object.fromEntries(names.map((name, at) => [name, String(1_000 + at)]))
    const { limits } = await settings(values)
    expect(limits).toEqual(
      Object.fromEntries(Object.keys(limits).map((name) => [name, Number(values[`SVC_LIMIT_${name.toUpperCase()}`])])),
    )
  })

  it("has the default that docs/settings.md states", async () => {
    const table = readFileSync(path.join(import.meta.dirname, "..", "..", "docs", "settings.md"), "utf8")
    const documented = [...table.matchAll(/^\| (`[^|]+`) \| ([^|]+) \|/gm)].flatMap(([, names = "", values = ""]) => {
      const variables = [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name!)
      const defaults = values.split(", ").map((value) => value.replaceAll("`", "").trim())
      return variables.length === defaults.length ? variables.map((name, at) => [name, defaults[at]!] as const) : []
    })
    const defaults = await settings({})
    const actual = new Map<string, unknown>()
    for (const [name, config] of own) {
      const [variable] = await variables(config as Config.Config<unknown>)
      actual.set(variable!, defaults[name as keyof Settings])
    }
    for (const [name, value] of Object.entries(defaults.limits)) actual.set(`SVC_LIMIT_${name.toUpperCase()}`, value)
    const units: Readonly<Record<string, number>> = { MiB: 1024 ** 2, GiB: 1024 ** 3 }
    const valueOf = (text: string) => {
      const [, number, unit] = /^([\d,]+) (\w+)$/.exec(text) ?? []
      return unit === undefined ? text.replace(/(?<=\d),(?=\d)/g, "") : String(Number(number) * units[unit]!)
    }
    // The documents describe these two defaults in words.
    const inWords = ["SVC_SYSTEM_FROM", "SVC_CONNECTOR_DISCLOSURE"]
    const simple = documented.filter(
      ([name]) =>
        ["string", "number"].includes(typeof actual.get(name)) && actual.get(name) !== "" && !inWords.includes(name),
    )
    expect(simple.length).toBeGreaterThan(30)
    expect(simple.map(([name, value]) => [name, valueOf(value)])).toEqual(
      simple.map(([name]) => [name, String(actual.get(name))]),
    )
  })

  const production = {
    SVC_ENV: "production",
    SVC_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    SVC_BASE_URL: "https://api.example/",
    SVC_PROFILE_BASE: "https://people.example/",
    SVC_MAIL_DOMAIN: "mail.example",
    SVC_TUNNEL_DOMAIN: "tunnel.example",
    SVC_MAIL_DIRECT: "true",
    SVC_HTTP_PORT: "1",
    SVC_IMAP_PORT: "2",
    SVC_IMAPS_PORT: "3",
    SVC_SUBMISSION_PORT: "4",
    SVC_SUBMISSIONS_PORT: "5",
    SVC_EDGE_PORT: "6",
    SVC_MCP_ORIGINS: "https://app.example",
  }
  const published = async (values: Readonly<Record<string, string>>) =>
    Effect.runPromise(Effect.provide(Effect.service(Addresses), addresses(await settings(values))))

  it("is published in Production with TLS and the public names", async () => {
    expect(await published(production)).toEqual({
      environment: "production",
      baseUrl: "https://api.example",
      profileBase: "https://people.example",
      mailDomain: "mail.example",
      tunnelDomain: "tunnel.example",
      tunnelScheme: "https",
      tunnelPort: undefined,
      mcpOrigins: ["https://app.example"],
      imap: { host: "mail.example", port: 3, security: "tls" },
      submission: { host: "mail.example", port: 5, security: "tls" },
    })
    const { imap, submission } = await published({ ...production, SVC_IMAP_HOST: "imap.example" })
    expect([imap.host, submission.host]).toEqual(["imap.example", "imap.example"])
  })

  it("is published in Development with the local names and ports", async () => {
    const { SVC_ENV: _, SVC_BASE_URL: _1, SVC_PROFILE_BASE: _2, SVC_MAIL_DOMAIN: _3, ...rest } = production
    const { SVC_TUNNEL_DOMAIN: _4, SVC_MASTER_KEY: _5, ...values } = rest
    expect(await published(values)).toEqual({
      environment: "development",
      baseUrl: "http://localhost:1",
      profileBase: "http://localhost:1",
      mailDomain: "mail.localhost",
      tunnelDomain: "tunnel.localhost",
      tunnelScheme: "http",
      tunnelPort: 6,
      mcpOrigins: ["https://app.example"],
      imap: { host: "localhost", port: 2, security: "starttls" },
      submission: { host: "localhost", port: 4, security: "starttls" },
    })
  })

  const refused: ReadonlyArray<readonly [Readonly<Record<string, string>>, RegExp]> = [
    [{ SVC_HTTP_PORT: "-1" }, /SVC_HTTP_PORT is not valid: expected a port/],
    [{ SVC_RUNNER_PORT: "65536" }, /SVC_RUNNER_PORT is not valid: expected a port/],
    [{ SVC_OPS_PORT: "70000" }, /SVC_OPS_PORT is not valid: expected a port/],
    [{ DATABASE_URL: "mysql://db/svc" }, /DATABASE_URL must be a PostgreSQL address/],
    [{ SVC_OPS_HOST: "0.0.0.0" }, /SVC_OPS_HOST exposes/],
    [{ SVC_HOST: "0.0.0.0" }, /SVC_HOST exposes/],
    [{ SVC_RUNNER_HOST: "10.0.0.1" }, /SVC_RUNNER_HOST exposes/],
    [{ SVC_SHUTDOWN_DELAY: "-1" }, /SVC_SHUTDOWN_DELAY/],
    [{ SVC_AUDIT_DAYS: "29" }, /SVC_AUDIT_DAYS/],
    [{ SVC_AUDIT_DAYS: "3651" }, /SVC_AUDIT_DAYS/],
    [{ SVC_EDGE_TCP_PORTS: "0-10" }, /SVC_EDGE_TCP_PORTS/],
    [{ SVC_EDGE_TCP_PORTS: "20-10" }, /SVC_EDGE_TCP_PORTS/],
    [{ SVC_EDGE_TCP_PORTS: "1-65536" }, /SVC_EDGE_TCP_PORTS/],
    [{ SVC_DANE_RESOLVER: "resolver.example" }, /SVC_DANE_RESOLVER/],
    [{ SVC_DANE_RESOLVER: "127.0.0.1:0" }, /SVC_DANE_RESOLVER/],
    [{ SVC_TRUSTED_PROXIES: "10.0.0.0/8, proxy" }, /SVC_TRUSTED_PROXIES contains proxy/],
    [{ SVC_PROXY_PROTOCOL_FROM: "10.0.0.0/33" }, /SVC_PROXY_PROTOCOL_FROM contains 10.0.0.0\/33/],
    [{ SVC_MCP_ORIGINS: "https://app.example/path" }, /SVC_MCP_ORIGINS must be/],
    [{ SVC_MAIL_DIRECT_PORT: "65536" }, /SVC_MAIL_DIRECT_PORT is not valid: expected a port/],
    [{ SVC_DRAIN: "-1" }, /SVC_DRAIN is not valid: expected an integer of 0 or more/],
    [{ SVC_LIMIT_CALLS: "-1" }, /SVC_LIMIT_CALLS is not valid: expected an integer of 0 or more/],
    [{ SVC_IDENTITY_QUOTA: "2.5" }, /SVC_IDENTITY_QUOTA is not valid: expected an integer/],
    [{ SVC_MAILBOX_BYTES: "0" }, /SVC_MAILBOX_BYTES is not valid: expected an integer of 1 or more/],
    [{ SVC_BASE_URL: "svc.example" }, /SVC_BASE_URL is not valid: expected an address/],
    [{ SVC_PROFILE_BASE: "https://people.example/?a" }, /SVC_PROFILE_BASE is not valid: expected an address/],
    [{ SVC_TOS_URL: "ftp://terms.example" }, /SVC_TOS_URL is not valid: expected an http or https address/],
    [{ SVC_MAIL_DOMAIN: "https://mail.example" }, /SVC_MAIL_DOMAIN is not valid: expected a domain/],
    [{ SVC_TUNNEL_DOMAIN: ".tunnel.example" }, /SVC_TUNNEL_DOMAIN is not valid: expected a domain/],
    [{ SVC_DNSBL: "zen.spamhaus.org, https://bl.example" }, /SVC_DNSBL is not valid: expected domains/],
    [{ SVC_MX: "mx1.example mx2.example" }, /SVC_MX is not valid: expected domains/],
    [{ OTEL_TRACES_SAMPLER_ARG: "1.5" }, /OTEL_TRACES_SAMPLER_ARG is not valid: expected a number from 0 to 1/],
    [{ OTEL_TRACES_SAMPLER_ARG: "-0.1" }, /OTEL_TRACES_SAMPLER_ARG is not valid: expected a number from 0 to 1/],
    [{ SVC_SIGNUP: "invite", SVC_INVITE_CODES: " , " }, /^SVC_SIGNUP=invite needs SVC_INVITE_CODES/],
    [{ SVC_SYSTEM_FROM: "no-reply" }, /SVC_SYSTEM_FROM is not valid: expected one mail address/],
    [{ SVC_POSTMASTER_TO: "Postmaster@mail.localhost" }, /^SVC_POSTMASTER_TO must be another address/],
    [{ SVC_POSTMASTER_TO: "abuse@m.example", SVC_MAIL_DOMAIN: "M.example" }, /^SVC_POSTMASTER_TO must be another/],
    [{ SVC_EDGE_TLS_CERT: "/tls/cert.pem" }, /^SVC_EDGE_TLS_KEY must be set too/],
    [{ SVC_SMTP_TLS_KEY: "/tls/key.pem", SVC_SMTP_TLS_CERT: "" }, /^SVC_SMTP_TLS_CERT must be set too/],
    [{ SVC_IMAP_TLS_CERT: "/tls/cert.pem" }, /^SVC_IMAP_TLS_KEY must be set too/],
    [{ SVC_RUNNER_TLS_CERT: "/tls/cert.pem" }, /^SVC_RUNNER_TLS_CA and SVC_RUNNER_TLS_KEY must be set too/],
    ...Object.keys(production)
      .filter((name) => /MASTER_KEY|BASE_URL|DOMAIN|DIRECT/.test(name))
      .map((name): readonly [Readonly<Record<string, string>>, RegExp] => [
        Object.fromEntries(Object.entries(production).filter(([other]) => other !== name)),
        new RegExp(`^Production needs [^,]*${name}[^,]*\\.$`),
      ]),
  ]
  it.each(refused)("of %j is refused", async (values, message) => {
    const failure = await Effect.runPromise(Effect.flip(Effect.provide(load, from(values))))
    expect(failure.message).toMatch(message)
  })

  it("at the edge of its range is accepted", async () => {
    for (const values of [
      { SVC_AUDIT_DAYS: "30" },
      { SVC_AUDIT_DAYS: "3650" },
      { SVC_HTTP_PORT: "65535", SVC_RUNNER_PORT: "0" },
      { SVC_EDGE_TCP_PORTS: "1-65535" },
      { SVC_EDGE_TCP_PORTS: "20-20" },
      { SVC_HOST: "::1", SVC_OPS_HOST: "localhost" },
      { SVC_LIMIT_CALLS: "0", SVC_MAILBOX_BYTES: "1", SVC_DRAIN: "0" },
      { OTEL_TRACES_SAMPLER_ARG: "0" },
      { OTEL_TRACES_SAMPLER_ARG: "1", SVC_SIGNUP: "invite", SVC_INVITE_CODES: "one" },
      { SVC_TOS_URL: "https://terms.example/?lang=en" },
      { SVC_POSTMASTER_TO: "postmaster@elsewhere.example" },
    ])
      expect(await settings(values)).toBeDefined()
  })

  it("that is a domain is read in lower case and A-labels", async () => {
    const found = await settings({ SVC_MAIL_DOMAIN: "Mail.Example", SVC_TUNNEL_DOMAIN: "tünnel.example" })
    expect([found.mailDomain, found.tunnelDomain]).toEqual(["mail.example", "xn--tnnel-kva.example"])
  })

  it("that is a list or an address is taken apart", async () => {
    const found = await settings({
      SVC_TRUSTED_PROXIES: " 10.0.0.0/8 ,192.0.2.1,2001:db8::1 ",
      SVC_FORWARDED_HEADER: " X-Real-IP ",
      SVC_DNSBL: "one.example, two.example",
      SVC_DANE_RESOLVER: "[2001:db8::1]:5353",
      SVC_INVITE_CODES: "one, two",
      SVC_MAIL_DOMAIN: "mail.example",
      SVC_SMTP_RELAY_URL: "smtp://user:pass@relay.example",
    })
    expect(found.trustedProxies.networks.map(([address, bits]) => `${address}/${bits}`)).toEqual([
      "10.0.0.0/8",
      "192.0.2.1/32",
      "2001:db8::1/128",
    ])
    expect(found).toMatchObject({
      trustedProxies: { header: "x-real-ip" },
      blockLists: ["one.example", "two.example"],
      daneResolver: Option.some({ host: "2001:db8::1", port: 5353 }),
      inviteCodes: new Set(["one", "two"]),
      mailServers: ["mail.example"],
      systemFrom: "no-reply@mail.example",
    })
    expect((await settings({ SVC_DANE_RESOLVER: "192.0.2.1" })).daneResolver).toEqual(
      Option.some({ host: "192.0.2.1", port: 53 }),
    )
    expect(Redacted.isRedacted(Option.getOrThrow(found.relayUrl))).toBe(true)
  })
})
