/**
 * The agents that call through Tunnels: verifies the signature of a request (Web Bot Auth) and remembers it while it is
 * valid, so that a copy of the request is refused. Each edge remembers the requests that it received itself.
 */
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { AgentKeys } from "@svc/cluster/proof/AgentKeys"
import { clockSkewSeconds, NotVerified, verifyRequest } from "@svc/cluster/proof/AgentRequests"
import { Addresses } from "@svc/domain/Addresses"
import { signatureSeconds } from "@svc/domain/proof/RequestSignature"
import { Clock, Effect } from "effect"
import type { Head } from "../../protocol/RequestHead.ts"
import type { BackgroundEffects } from "../BackgroundEffects.ts"
import type { Client } from "../http/ConnectionContext.ts"
import { refusal } from "../http/EdgeResponses.ts"
import * as Admission from "./Admission.ts"
import type { AgentCaller } from "./Route.ts"

/** Requests that are remembered for one Tunnel. Further signed requests are refused until earlier ones expire. */
const rememberedAtMost = 100_000

/** The request for a signature (RFC 9421 section 5). */
const wanted =
  'sig1=("@authority" "@method" "@path" "@query" "signature-agent";key="sig1");created;expires;tag="web-bot-auth"'

/** Returns the response to a request whose caller is not admitted. */
export const unproved = ({ handle }: Standing, message: string): Buffer =>
  refusal(401, message, { "accept-signature": wanted, "www-authenticate": `Signature realm="${handle}"` })

const notAdmitted = (standing: Standing, caller: AgentCaller | undefined) =>
  unproved(
    standing,
    caller === undefined
      ? "This tunnel asks for requests that are signed by an agent (Web Bot Auth)."
      : `This tunnel is not open to ${caller.origin}.`,
  )

/** Returns the response for a request without a signature, if the Tunnel requires one. */
export const refusesUnsigned = (standing: Standing, head: Head): Buffer | undefined =>
  head.isSigned || standing.settings.callers === "anyone" ? undefined : notAdmitted(standing, undefined)

/** The signatures that were seen, by Identity, each with the second in which it expires. In order of arrival. */
export const makeMemory = (tunnels = new Map<string, Map<string, number>>()) => {
  let sweptAt = 0

  const expire = (seen: Map<string, number>, now: number) => {
    for (const [signature, until] of seen) {
      if (until >= now) return
      seen.delete(signature)
    }
  }

  /** Removes Tunnels without a recent request once a minute. */
  const sweep = (now: number) => {
    if (now < sweptAt + signatureSeconds) return
    sweptAt = now
    for (const [identity, seen] of tunnels) {
      expire(seen, now)
      if (seen.size === 0) tunnels.delete(identity)
    }
  }

  return {
    /** Remembers a signature. Returns `repeated` if it was seen before, and `full` if no more can be remembered. */
    take: (identity: string, signature: string, created: number, now: number): "new" | "repeated" | "full" => {
      sweep(now)
      const seen = tunnels.get(identity) ?? new Map<string, number>()
      tunnels.set(identity, seen)
      expire(seen, now)
      if (seen.has(signature)) return "repeated"
      if (seen.size >= rememberedAtMost) return "full"
      seen.set(signature, created + signatureSeconds + clockSkewSeconds)
      return "new"
    },
  }
}

const unavailable = (message: string) => refusal(503, message, { "retry-after": "5" })

export const make = Effect.fnUntraced(function* ({ run }: { readonly run: BackgroundEffects["run"] }) {
  const keys = yield* AgentKeys
  const book = yield* Addresses
  const clock = yield* Clock.Clock
  const memory = makeMemory()
  const schemes = book.environment === "development" ? ["https:", "http:"] : ["https:"]
  /** The callers of verified requests, which may be routed a second time. */
  const verified = new WeakMap<Head, AgentCaller>()

  const verify = async ({ identityId }: Standing, head: Head, proto: Client["proto"]) => {
    const now = clock.currentTimeMillisUnsafe()
    const seconds = Math.floor(now / 1000)
    const url = head.target.startsWith("/") ? `${proto}://${head.sentHost}${head.target}` : head.target
    let handle: string | undefined
    const { origin, kid, nonce, created } = await verifyRequest(
      { method: head.method, url, headers: head.headers },
      {
        now: seconds,
        schemes,
        keyOf: (origin, kid) => {
          const cached = keys.cached(origin, kid, now)
          if (cached !== undefined) {
            handle = cached.handle
            return cached.key
          }
          const found = run(Effect.result(keys.find(origin, kid, identityId)))
          return found.then((result) => {
            if (result._tag === "Failure") {
              throw new NotVerified("unreadable_keys", result.failure.message, result.failure.isBusy)
            }
            handle = result.success.handle
            return result.success.keys.get(kid)
          })
        },
      },
    )
    const taken = memory.take(identityId, `${kid} ${created} ${nonce}`, created, seconds)
    const caller: AgentCaller = { origin, handle }
    return { caller, taken }
  }

  /**
   * Returns the agent that signed the request, undefined if none is proved and the Tunnel admits anyone, or the response
   * that refuses the request. A repeated request is always refused.
   */
  return async (standing: Standing, head: Head, proto: Client["proto"]): Promise<AgentCaller | Buffer | undefined> => {
    const known = verified.get(head)
    if (known !== undefined) return Admission.allowsCaller(standing, known) ? known : notAdmitted(standing, known)
    try {
      const { caller, taken } = await verify(standing, head, proto)
      if (taken === "repeated") return unproved(standing, "This request was received before. Sign each request anew.")
      if (taken === "full") return unavailable("This tunnel received too many signed requests in the last minute.")
      if (!Admission.allowsCaller(standing, caller)) return notAdmitted(standing, caller)
      verified.set(head, caller)
      return caller
    } catch (error) {
      if (standing.settings.callers === "anyone") return undefined
      if (!(error instanceof NotVerified)) return unavailable("The signature could not be verified. Try again.")
      return error.isBusy ? unavailable(error.message) : unproved(standing, error.message)
    }
  }
})

export type Callers = Effect.Success<ReturnType<typeof make>>
