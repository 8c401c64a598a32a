/** Checks the settings: whether they are valid, and whether a name is misspelt. */
import { settingNames } from "@svc/cluster/connectors/platforms/Platforms"
import { existsSync, statSync } from "node:fs"
import * as path from "node:path"
import { Config, ConfigProvider, Effect, Option } from "effect"
import { settingsConfig, type Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("settings")

export const configuration = (
  settings:
    | { readonly _tag: "Success"; readonly success: Settings }
    | { readonly _tag: "Failure"; readonly failure: { readonly message: string } },
) =>
  settings._tag === "Failure"
    ? found(
        "configuration",
        "fail",
        settings.failure.message,
        "Correct the setting; docs/settings.md lists all settings.",
      )
    : found("configuration", "ok", settings.success.environment)

/** Variables that other commands and the tests read. */
const others = ["SVC_KEY", "SVC_API_URL", "SVC_LOG_LEVEL", "SVC_LOG_FORMAT", "SVC_LOG_ADDRESSES"]

/** Returns the edit distance of two names (Levenshtein). */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + same)
    }
    row = next
  }
  return row.at(-1)!
}

/** Returns the names of all settings. */
export const knownNames = Effect.gen(function* () {
  const names = new Set(others)
  const listening = ConfigProvider.make((place) =>
    Effect.sync(() => {
      names.add(place.map(String).join("_"))
      return undefined
    }),
  )
  yield* Effect.ignore(Config.all(settingsConfig).parse(listening))
  for (const name of yield* settingNames) names.add(name)
  return names
})

export const misspelt = Effect.gen(function* () {
  const known = yield* knownNames
  const unknown = Object.keys(process.env).filter((name) => name.startsWith("SVC_") && !known.has(name))
  return unknown.map((name) => {
    const [nearest] = [...known].toSorted((one, other) => distance(one, name) - distance(other, name))
    return found("unknown setting", "warn", `${name} is not a known setting`, `Did you mean ${nearest}?`)
  })
})

/** Returns whether the file grants one of these permissions to users other than its owner. */
const grants = (file: string, rights: number): boolean =>
  process.platform !== "win32" && existsSync(file) && (statSync(file).mode & rights) !== 0

/** Finds secret files that every user can read. Group access is allowed, since daemons share keys that way. */
export const secretFiles = (
  known: ReadonlySet<string>,
  given: Readonly<Record<string, string | undefined>> = process.env,
): ReadonlyArray<Finding.Finding> =>
  [...known]
    .filter((name) => name.endsWith("_FILE") || name.endsWith("_TLS_KEY"))
    .flatMap((name) => {
      const file = given[name]
      return file !== undefined && grants(file, 0o007)
        ? [
            found(
              "secret files",
              name === "SVC_MASTER_KEY_FILE" ? "fail" : "warn",
              `${file}, set by ${name}, is readable by every user of this machine`,
              `chmod o-rwx ${file}`,
            ),
          ]
        : []
    })

/** Checks the exposure of a production service: client addresses behind a proxy, and unencrypted secrets. */
export const exposure = (settings: Settings): ReadonlyArray<Finding.Finding> => {
  if (settings.environment === "development") return []
  const inClear = (
    [
      ["SVC_BASE_URL", settings.baseUrl],
      ["SVC_PROFILE_BASE", settings.profileBase],
    ] as const
  ).filter(([name, url]) => !url.startsWith("https:") && (name === "SVC_BASE_URL" || url !== settings.baseUrl))
  return [
    ...(inClear.length > 0
      ? inClear.map(([name, url]) =>
          found(
            name === "SVC_BASE_URL" ? "base URL" : "profile base",
            "fail",
            `${name} is ${url}: links, keys and sessions would be sent unencrypted`,
            `Put a proxy with a certificate in front, and set ${name} to its https address.`,
          ),
        )
      : [found("base URL", "ok", settings.baseUrl)]),
    settings.trustedProxies.networks.length === 0
      ? found(
          "proxies",
          "warn",
          "SVC_TRUSTED_PROXIES is empty: limits, allowed networks and the audit log see the proxy's address for every client",
          "Set SVC_TRUSTED_PROXIES to the addresses of the proxies in front of the API.",
        )
      : found("proxies", "ok", `${settings.trustedProxies.networks.length} networks are trusted`),
  ]
}

export const masterKey = ({ dataDirectory, masterKey: given, databaseUrl }: Settings) =>
  Effect.sync(() => {
    const file = path.join(dataDirectory, "master.key")
    if (Option.isSome(given)) return found("master key", "ok", "SVC_MASTER_KEY")
    if (existsSync(file)) {
      return grants(file, 0o077)
        ? found("master key", "warn", `${file} is readable by other users`, `chmod 600 ${file}`)
        : found("master key", "ok", `${file}: store a copy away from the data`)
    }
    const hasData = Option.isSome(databaseUrl) || existsSync(path.join(dataDirectory, "pg18"))
    return hasData
      ? found(
          "master key",
          "fail",
          `${file} is missing, but data exists`,
          "Restore the file, or set SVC_MASTER_KEY to its key: sealed data cannot be decrypted without it.",
        )
      : found("master key", "ok", "created at the first start")
  })

/** Checks that agents do not share a site with the console, whose cookies reach every name of the site. */
export const sites = Effect.fnUntraced(function* ({ baseUrl, tunnelDomain, environment }: Settings) {
  if (environment === "development") return []
  const { getDomain } = yield* Effect.promise(() => import("tldts"))
  const site = getDomain(new URL(baseUrl).hostname, { allowPrivateDomains: true })
  const ofTunnels = getDomain(`a.${tunnelDomain}`, { allowPrivateDomains: true })
  return [
    site !== null && site === ofTunnels
      ? found(
          "sites",
          "warn",
          `tunnels share a site with the API (${site}), so agents' pages are same-site with the console`,
          "Use a separate domain for tunnels, or add the tunnel domain to the Public Suffix List (publicsuffix.org).",
        )
      : found("sites", "ok", `${site ?? baseUrl}; tunnels: ${ofTunnels ?? tunnelDomain}`),
  ]
})
