/** Whether each recipient may be written to, as the service has it now: said while somebody writes, not when it is sent. */
import { useQueries } from "@tanstack/preact-query"
import { type Answer, call } from "../client/Client.ts"
import { keyOf } from "../client/Queries.ts"

const route = "GET /api/identities/:handle/allowed-recipients"

type Listed = Answer<typeof route>["allowed_recipients"][number]

/** `wrong`: it is no address; `unknown`: not looked up yet. */
export type Standing = "allowed" | "expired" | "suppressed" | "not_allowed" | "wrong" | "unknown"

export interface Judged {
  readonly address: string
  readonly is: Standing
  /** Since when and why nothing goes there. */
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

/** The address itself comes first of those that begin with it. */
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

/** Addresses out of what was typed or pasted: `Ada <ada@example.org>, bob@example.org`. */
export const addressesIn = (text: string): ReadonlyArray<string> =>
  text
    .split(/[,;\n]+/)
    .flatMap((part) => /<([^<>]+)>/.exec(part)?.[1] ?? part.trim().split(/\s+/))
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .slice(0, 60)
