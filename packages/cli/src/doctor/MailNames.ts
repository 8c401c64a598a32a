/** Checks what other mail servers verify: forward and reverse names, SPF look-ups and the MTA-STS policy. */
import { Effect } from "effect"
import type { Settings } from "../serve/Settings.ts"
import { isPublic, type Ask } from "./Dns.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("dns")

/** Maximum number of look-ups of an SPF record (RFC 7208 section 4.6.4). */
const mostLookups = 10

/** Counts the look-ups of a record and its includes; stops above the limit. */
const lookupsOf = (dns: Ask, domain: string, depth = 0): Effect.Effect<number, "silent"> =>
  Effect.gen(function* () {
    const record = (yield* dns(domain, "TXT")).find((one) => /^v=spf1( |$)/i.test(one))
    if (record === undefined || depth > mostLookups) return 0
    let count = 0
    for (const term of record.split(/\s+/).slice(1)) {
      const [, mechanism, , target] = /^[+?~-]?(include|a|mx|ptr|exists|redirect)\b([:=]([^/\s]+))?/i.exec(term) ?? []
      if (mechanism === undefined) continue
      count++
      if (/include|redirect/i.test(mechanism) && target !== undefined && count <= mostLookups) {
        count += yield* lookupsOf(dns, target, depth + 1)
      }
    }
    return count
  })

const spf = Effect.fnUntraced(function* (dns: Ask, domain: string) {
  const records = (yield* dns(domain, "TXT")).filter((one) => /^v=spf1( |$)/i.test(one))
  if (records.length > 1) {
    return [
      found(
        "SPF",
        "fail",
        `${domain} has ${records.length} records, so receivers ignore all of them`,
        "Merge them into one record (RFC 7208 section 3.2).",
      ),
    ]
  }
  const count = yield* lookupsOf(dns, domain)
  return count > mostLookups
    ? [
        found(
          "SPF",
          "fail",
          `${domain} needs ${count} look-ups or more, and receivers reject records with more than ${mostLookups}`,
          "Replace includes by addresses (ip4:, ip6:).",
        ),
      ]
    : []
})

/** Checks that the server's name is not an alias and that its addresses resolve back to it. */
const server = Effect.fnUntraced(function* (dns: Ask, name: string) {
  const findings: Array<Finding.Finding> = []
  const aliases = yield* dns(name, "CNAME")
  if (aliases.length > 0) {
    findings.push(
      found(
        "MX",
        "fail",
        `${name} is an alias of ${aliases.join(", ")}`,
        "Publish A or AAAA records for it (RFC 2181 section 10.3).",
      ),
    )
  }
  const addresses = [...(yield* dns(name, "A")), ...(yield* dns(name, "AAAA"))]
  for (const address of addresses) {
    const back = yield* dns(address, "PTR")
    findings.push(
      back.includes(name.toLowerCase())
        ? found("PTR", "ok", `${address} is ${name}`)
        : found(
            "PTR",
            "warn",
            `${address} is ${back.length === 0 ? "nobody" : back.join(", ")}, not ${name}`,
            `Ask the provider of the address to set its name to ${name}: many servers reject mail otherwise.`,
          ),
    )
  }
  return findings
})

const patienceMillis = 5000

export const policy = ({ mailDomain, mailServers, mtaSts }: Settings) =>
  Effect.gen(function* () {
    if (mtaSts === "none") return []
    const url = `https://mta-sts.${mailDomain}/.well-known/mta-sts.txt`
    const text = yield* Effect.tryPromise(async () => {
      const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(patienceMillis) })
      return answer.ok ? answer.text() : undefined
    }).pipe(Effect.orElseSucceed(() => undefined))
    if (text === undefined) {
      return [
        found(
          "MTA-STS",
          "warn",
          `${url} is not reachable`,
          "Point this name at the HTTP listener, with a certificate for it.",
        ),
      ]
    }
    const named = new Set([...text.matchAll(/^mx:\s*(\S+)/gim)].map(([, name]) => name!.toLowerCase()))
    const missing = mailServers.filter((name) => !named.has(name.toLowerCase()))
    return [
      missing.length === 0
        ? found("MTA-STS", "ok", url)
        : found(
            "MTA-STS",
            "fail",
            `the policy does not name ${missing.join(", ")}`,
            "Set SVC_MX to the servers in the MX records.",
          ),
    ]
  })

/** Reports which authorities may issue certificates, if CAA records exist. */
const authorities = Effect.fnUntraced(function* (dns: Ask, name: string) {
  const issuers = yield* dns(name, "CAA")
  return issuers.length === 0
    ? []
    : [found("CAA", "ok", `only ${issuers.join(", ")} may issue certificates for ${name}`)]
})

const checks = (settings: Settings, dns: Ask) => [
  spf(dns, settings.mailDomain),
  ...settings.mailServers.map((name) => server(dns, name)),
  authorities(dns, settings.tunnelDomain),
  policy(settings),
]

export const findings = (settings: Settings, dns: Ask) =>
  Effect.map(
    Effect.all(
      (isPublic(settings) ? checks(settings, dns) : []).map((check) =>
        Effect.orElseSucceed(check as Effect.Effect<ReadonlyArray<Finding.Finding>, "silent">, () => [
          found("mail", "warn", "DNS did not answer", "Retry, or query another name server: --resolver 9.9.9.9"),
        ]),
      ),
    ),
    (all) => all.flat(),
  )
