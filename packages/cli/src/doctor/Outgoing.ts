/** Checks outgoing mail: whether the relay accepts the service, and whether the DKIM keys are published. */
import { existsSync, readdirSync } from "node:fs"
import { lookup } from "node:dns/promises"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import { isPublished } from "@svc/mail-gateway/mail/sending/DkimPublication"
import { begin } from "@svc/mail-gateway/mail/sending/smtp/Conversation"
import { Effect, Option } from "effect"
import { listed } from "../dkim/Keys.ts"
import type { Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("mail")

const heloOf = (settings: Settings) => settings.mailServers[0] ?? settings.mailDomain

/** Connects to the relay with EHLO, TLS and authentication, then quits. */
const relay = (settings: Settings, server: Option.Option.Value<Settings["relay"]>) =>
  begin(
    { host: server.host, port: server.port },
    { name: server.host, helo: heloOf(settings), tls: server.tls, login: server.login },
  ).pipe(
    Effect.map((conversation) => {
      conversation.quit()
      const how = conversation.isSecure ? "over TLS" : "unencrypted"
      return found("outgoing mail", "ok", `through the relay ${server.host}:${server.port}, ${how}`)
    }),
    Effect.catch((error) =>
      Effect.succeed(
        found(
          "outgoing mail",
          "fail",
          `the relay ${server.host}:${server.port} does not accept the service: ${error._tag === "Broken" ? error.message : `${error.code ?? ""} ${error.text}`.trim()}`,
          "Start the relay, or correct SVC_SMTP_RELAY_URL (?tls=optional or ?tls=none if the relay has no TLS).",
        ),
      ),
    ),
  )

const direct = Effect.fnUntraced(function* (settings: Settings) {
  const helo = heloOf(settings)
  const address = yield* Effect.option(Effect.tryPromise(() => lookup(helo)))
  return Option.isSome(address)
    ? found("outgoing mail", "ok", `delivered directly as ${helo} (${address.value.address})`)
    : found(
        "outgoing mail",
        "warn",
        `delivered directly as ${helo}, which does not resolve`,
        "Give the first name of SVC_MX an address that resolves back to it: many servers reject others.",
      )
})

const transport = (settings: Settings): Effect.Effect<Finding.Finding> => {
  if (Option.isSome(settings.relay)) return relay(settings, settings.relay.value)
  if (settings.mailDirect) return direct(settings)
  return Effect.succeed(
    found("outgoing mail", "ok", "not sent to other domains: set SVC_SMTP_RELAY_URL or SVC_MAIL_DIRECT"),
  )
}

const dkim = Effect.fnUntraced(function* (settings: Settings) {
  const keys = yield* Effect.option(Effect.catchDefect(listed(settings, false), () => Effect.fail("no store")))
  if (Option.isNone(keys)) {
    return found(
      "dkim",
      "warn",
      "the keys cannot be read",
      "Start the service, then run `svc dkim` to see the records.",
    )
  }
  const resolver = yield* Resolver
  const wanted = keys.value.filter(({ state }) => state !== "past")
  const seen = yield* Effect.forEach(wanted, (key) => isPublished(resolver, key), { concurrency: 4 })
  const missing = wanted.filter((_, at) => seen[at] === false)
  const names = (some: typeof wanted) => some.map(({ selector }) => selector).join(", ")
  if (missing.length === 0) return found("dkim", "ok", `${names(wanted)} are published`)
  return found(
    "dkim",
    missing.some(({ state }) => state === "signing") ? "fail" : "warn",
    `${names(missing)} of ${settings.mailDomain} are missing or wrong in DNS`,
    "Publish what `svc dkim` prints.",
  )
}, Effect.provide(Resolver.layer))

/** The keys are checked if mail leaves the service and a store exists. */
export const findings = Effect.fnUntraced(function* (settings: Settings) {
  const first = yield* transport(settings)
  const sends = Option.isSome(settings.relay) || settings.mailDirect
  const made =
    existsSync(settings.dataDirectory) &&
    readdirSync(settings.dataDirectory).some((name) => /^(pg\d+|master\.key)$/.test(name))
  const hasStore = Option.isSome(settings.databaseUrl) || made
  return sends && hasStore ? [first, yield* dkim(settings)] : [first]
})
