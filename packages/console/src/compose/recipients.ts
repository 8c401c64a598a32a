/** Checks the delivery permission of recipients while a person types. */
import { useQueries } from "@tanstack/preact-query"
import { useMemo } from "preact/hooks"
import { type Answer, call } from "../client/Client.ts"
import { keyOf, useCall } from "../client/Queries.ts"

const route = "GET /api/identities/:handle/allowed-recipients"

type Listed = Answer<typeof route>["allowed_recipients"][number]

/** `wrong`: not an email address; `unknown`: not checked yet. */
export type Standing = "allowed" | "expired" | "suppressed" | "not_allowed" | "wrong" | "unknown"

export interface Judged {
  readonly address: string
  readonly is: Standing
  /** The suppression of the address, if any. */
  readonly suppressed?: Listed["suppressed"]
}

interface Refused extends Judged {
  readonly is: Exclude<Standing, "allowed" | "unknown">
}
export const isRefused = (judged: Judged): judged is Refused => judged.is !== "allowed" && judged.is !== "unknown"

const isAddress = (text: string) => /^[^\s@<>(),;:"]+@[^\s@<>(),;:"]+$/.test(text) && text.length <= 254

const standing = (address: string, found: ReadonlyArray<Listed> | undefined): Judged => {
  if (!isAddress(address)) return { address, is: "wrong" }
  if (found === undefined) return { address, is: "unknown" }
  const own = found.find((one) => one.address.toLowerCase() === address.toLowerCase())
  if (own === undefined) return { address, is: "not_allowed" }
  if (own.suppressed !== null) return { address, is: "suppressed", suppressed: own.suppressed }
  return { address, is: own.expired ? "expired" : "allowed" }
}

/** The list is sorted, so that the exact address is among the first results. */
const lookedAt = 5

export const useJudged = (handle: string, addresses: ReadonlyArray<string>): ReadonlyArray<Judged> => {
  const inputs = addresses.map((address) => ({
    params: { handle },
    query: { address: address.toLowerCase().slice(0, 320), limit: lookedAt },
  }))
  const answers = useQueries({
    queries: inputs.map((input, index) => ({
      queryKey: keyOf(route, input),
      queryFn: () => call(route, input),
      enabled: isAddress(addresses[index]!),
      staleTime: 15_000,
    })),
  })
  return addresses.map((address, index) => standing(address, answers[index]?.data?.allowed_recipients))
}

/** Extracts addresses from typed or pasted text: `Ada <ada@example.org>, bob@example.org`. */
export const addressesIn = (text: string): ReadonlyArray<string> =>
  text
    .split(/[,;\n]+/)
    .flatMap((part) => /<([^<>]+)>/.exec(part)?.[1] ?? part.trim().split(/\s+/))
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .slice(0, 60)

export interface Known {
  readonly address: string
  readonly name: string | null
}

/** Maximum number of suggestions, and of recent messages whose people are suggested. */
const suggestedAtMost = 6
const recentMessages = 50

/** Returns Allowed Recipients and the people of recent messages, the most recent first. */
export const useKnown = (handle: string, own: string): ReadonlyArray<Known> => {
  const allowed = useCall(route, { params: { handle }, query: { limit: 200 } }).data
  const recent = useCall("GET /api/identities/:handle/messages", {
    params: { handle },
    query: { limit: recentMessages },
  })
  return useMemo(() => {
    const found = new Map<string, Known>()
    const people = (recent.data?.messages ?? []).flatMap(({ from, to, cc }) => [
      ...(from === null ? [] : [from]),
      ...to,
      ...cc,
    ])
    const listed = (allowed?.allowed_recipients ?? []).flatMap(({ address, expired, suppressed }) =>
      expired || suppressed !== null ? [] : [{ address, name: null }],
    )
    for (const { address, name } of [...people, ...listed]) {
      const key = address.toLowerCase()
      if (key === own.toLowerCase() || !isAddress(address)) continue
      found.set(key, { address, name: found.get(key)?.name ?? name })
    }
    return [...found.values()]
  }, [allowed, recent.data, own])
}

/** Returns the known people whose address, domain or a word of their name begins with the text. */
export const suggestionsFor = (typed: string, known: ReadonlyArray<Known>, taken: ReadonlyArray<string>) => {
  const text = typed.trim().toLowerCase()
  if (text === "") return []
  const begins = ({ address, name }: Known) =>
    [address, address.split("@")[1] ?? "", ...(name ?? "").split(/\s+/), name ?? ""].some((part) =>
      part.toLowerCase().startsWith(text),
    )
  return known.filter((one) => begins(one) && !taken.includes(one.address)).slice(0, suggestedAtMost)
}
