/** The settings: whether they make a service, and whether a name among them is misspelt. */
import { settingNames } from "@svc/cluster/connectors/platforms/Platforms"
import { existsSync, statSync } from "node:fs"
import * as path from "node:path"
import { Config, ConfigProvider, Effect, Option } from "effect"
import { asked, type Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("settings")

export const configuration = (
  settings:
    | { readonly _tag: "Success"; readonly success: Settings }
    | { readonly _tag: "Failure"; readonly failure: { readonly message: string } },
) =>
  settings._tag === "Failure"
    ? found("configuration", "fail", settings.failure.message, "Correct the setting: docs/settings.md lists them all.")
    : found("configuration", "ok", settings.success.environment)

/** Names that other commands, and the tests of a checkout, read. */
const others = ["SVC_KEY", "SVC_API_URL", "SVC_LOG_LEVEL", "SVC_LOG_FORMAT", "SVC_LOG_ADDRESSES"]

/** How many letters lie between two names (Levenshtein). */
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

/** Every name that the settings ask for. */
export const knownNames = Effect.gen(function* () {
  const names = new Set(others)
  const listening = ConfigProvider.make((place) =>
    Effect.sync(() => {
      names.add(place.map(String).join("_"))
      return undefined
    }),
  )
  yield* Effect.ignore(Config.all(asked).parse(listening))
  for (const name of yield* settingNames) names.add(name)
  return names
})

export const misspelt = Effect.gen(function* () {
  const known = yield* knownNames
  const unknown = Object.keys(process.env).filter((name) => name.startsWith("SVC_") && !known.has(name))
  return unknown.map((name) => {
    const [nearest] = [...known].toSorted((one, other) => distance(one, name) - distance(other, name))
    return found("unknown setting", "warn", `${name} is nobody's setting`, `Did you mean ${nearest}?`)
  })
})

export const masterKey = ({ dataDirectory, masterKey: given, databaseUrl }: Settings) =>
  Effect.sync(() => {
    const file = path.join(dataDirectory, "master.key")
    if (Option.isSome(given)) return found("master key", "ok", "SVC_MASTER_KEY")
    if (existsSync(file)) {
      const open = process.platform !== "win32" && (statSync(file).mode & 0o077) !== 0
      return open
        ? found("master key", "warn", `${file} can be read by others`, `chmod 600 ${file}`)
        : found("master key", "ok", `${file}: keep a copy where the data is not`)
    }
    const hasData = Option.isSome(databaseUrl) || existsSync(path.join(dataDirectory, "pg18"))
    return hasData
      ? found(
          "master key",
          "fail",
          `${file} is missing beside existing data`,
          "Put the file back, or set SVC_MASTER_KEY to its key: nothing that is sealed can be opened without it.",
        )
      : found("master key", "ok", "made at the first start")
  })

/** Cookies of the console go to every name of their site, and agents answer under the tunnel domain. */
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
          `tunnels are under the site of the API (${site}): what an agent serves is of the same site as the console`,
          "Give tunnels a domain of their own, or have it put on the Public Suffix List (publicsuffix.org).",
        )
      : found("sites", "ok", `${site ?? baseUrl}; tunnels: ${ofTunnels ?? tunnelDomain}`),
  ]
})
