/** Compares published DNS records with the output of `svc dns`. */
import { Resolver } from "node:dns/promises"
import { Effect } from "effect"
import { lineOf, wanted, type Wanted } from "../dns/Records.ts"
import type { Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("dns")

/** A DNS query. Returns records in zone file notation, or an empty list. */
export type Ask = (
  name: string,
  kind: Wanted["kind"] | "CNAME" | "PTR" | "CAA",
) => Effect.Effect<ReadonlyArray<string>, "silent">

const absent = new Set(["ENOTFOUND", "ENODATA"])
const patienceMillis = 3000

/** Asks the resolvers of this machine, or a given one. */
export const asking = (server: string | undefined): Ask => {
  const resolver = new Resolver({ timeout: patienceMillis, tries: 2 })
  if (server !== undefined) resolver.setServers([server])
  const answers = async (name: string, kind: Parameters<Ask>[1]): Promise<ReadonlyArray<string>> => {
    switch (kind) {
      case "MX":
        return (await resolver.resolveMx(name)).map(
          ({ priority, exchange }) => `${priority} ${exchange.toLowerCase()}.`,
        )
      case "TXT":
        return (await resolver.resolveTxt(name)).map((parts) => parts.join(""))
      case "SRV":
        return (await resolver.resolveSrv(name)).map(
          (one) => `${one.priority} ${one.weight} ${one.port} ${one.name.toLowerCase()}.`,
        )
      case "CNAME":
        return resolver.resolveCname(name)
      case "PTR":
        return (await resolver.reverse(name)).map((one) => one.toLowerCase())
      case "CAA":
        return (await resolver.resolveCaa(name)).flatMap(({ issue }) => (issue === undefined ? [] : [issue]))
      case "A":
        return resolver.resolve4(name)
      case "AAAA":
        return resolver.resolve6(name)
    }
  }
  return (name, kind) =>
    Effect.tryPromise({ try: () => answers(name, kind), catch: (error) => error }).pipe(
      Effect.catch((error) =>
        error instanceof Error && "code" in error && absent.has(String(error.code))
          ? Effect.succeed([])
          : Effect.fail("silent" as const),
      ),
    )
}

/** Returns a concrete name to query for a wildcard. */
const queryName = (name: string) => name.replace(/^\*\./, "svc-doctor.")

/** Queries a record. If the expected address is unknown, any address is accepted. */
const ask = (dns: Ask, { name, kind, value }: Wanted) =>
  value === undefined
    ? Effect.map(Effect.all([dns(queryName(name), "A"), dns(queryName(name), "AAAA")]), (both) => both.flat())
    : dns(queryName(name), kind)

const judge = (dns: Ask, record: Wanted) =>
  ask(dns, record).pipe(
    Effect.map((answers) => {
      const name = `${record.kind} ${record.name}`
      if (answers.some(record.is)) return found(name, "ok", answers.join(", "))
      const others = answers.filter((answer) => record.kind !== "TXT" || /^v=/i.test(answer))
      const detail = others.length === 0 ? `no record found (${record.why})` : `is ${others.join(", ")}`
      return found(name, record.essential ? "fail" : "warn", detail, lineOf(record))
    }),
    Effect.catch(() =>
      Effect.succeed(
        found(
          `${record.kind} ${record.name}`,
          "warn",
          "DNS did not answer",
          "Retry, or query another name server: --resolver 9.9.9.9",
        ),
      ),
    ),
  )

/** Returns whether the deployment's names are public. Names below `localhost` have no DNS records. */
export const isPublic = ({ mailDomain, tunnelDomain }: Settings) =>
  !mailDomain.endsWith("localhost") && !tunnelDomain.endsWith("localhost")

export const findings = Effect.fnUntraced(function* (settings: Settings, dns: Ask) {
  if (!isPublic(settings)) return [found("names", "ok", "local names only, no DNS records needed")]
  return yield* Effect.forEach(wanted(settings, { addresses: [] }), (record) => judge(dns, record), {
    concurrency: 8,
  })
})
