/**
 * Determines the client's address: the peer of the connection, or the address that a trusted proxy (`SVC_TRUSTED_PROXIES`)
 * reports in the configured header (`SVC_FORWARDED_HEADER`). Other headers can be forged by the client and are ignored.
 * Limits treat an IPv6 /64 as one client, because one customer owns all of it; the networks of keys are matched against the
 * full address.
 */
import ipaddr from "ipaddr.js"
import { Context, Effect, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import type { Source } from "../RequestContext.ts"

export type Networks = ReadonlyArray<[ipaddr.IPv4 | ipaddr.IPv6, number]>

/** The trusted proxies, and the header in which they report the client. */
export interface Proxies {
  readonly networks: Networks
  /** In lower case. `forwarded` is parsed by RFC 7239, any other as a list of addresses. */
  readonly header: string
}

export const TrustedProxies = Context.Reference<Proxies>("@svc/api/TrustedProxies", {
  defaultValue: () => ({ networks: [], header: "x-forwarded-for" }),
})

const normal = (text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined => {
  const bare = text
    .trim()
    .replace(/^"|"$/g, "")
    .replace(/^\[([^\]]*)\](?::\d+)?$/, "$1")
    .replace(/^([\d.]+):\d+$/, "$1")
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
}

/** Cache of parsed peer addresses, because a connection carries many requests. */
const peers = new Map<string, ipaddr.IPv4 | ipaddr.IPv6>()
const peersAtMost = 10_000

const ofPeer = (text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined => {
  const known = peers.get(text)
  if (known !== undefined) return known
  const read = normal(text)
  if (read === undefined) return undefined
  if (peers.size >= peersAtMost) peers.clear()
  peers.set(text, read)
  return read
}

const isTrusted = (networks: Networks, address: ipaddr.IPv4 | ipaddr.IPv6) =>
  networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))

/** Returns the hops of a request, nearest last. */
const hops = (header: string, value: string | undefined): ReadonlyArray<string> => {
  const elements = value?.split(",") ?? []
  return header === "forwarded"
    ? elements.map((element) => /(?:^|;)\s*for=("[^"]*"|[^;,\s]*)/i.exec(element)?.[1] ?? "")
    : elements
}

/** Returns the nearest hop that is not a trusted proxy. */
const nearest = (
  { networks, header }: Proxies,
  peer: string | undefined,
  headers: Readonly<Record<string, string | undefined>>,
): ipaddr.IPv4 | ipaddr.IPv6 | undefined => {
  let client = peer === undefined ? undefined : ofPeer(peer)
  if (client === undefined || !isTrusted(networks, client)) return client
  const chain = hops(header, headers[header]).toReversed()
  for (let at = 0; client !== undefined && isTrusted(networks, client) && at < chain.length; at++) {
    const next = normal(chain[at]!)
    if (next === undefined) break
    client = next
  }
  return client
}

type Hops = Parameters<typeof nearest>

/** Returns the client as rate limits identify it. */
export const resolve = (...hops: Hops): string => {
  const client = nearest(...hops)
  if (client === undefined) return "unknown"
  return client instanceof ipaddr.IPv6 ? `${client.parts.slice(0, 4).join(":")}::/64` : client.toString()
}

/** Returns the source of a request; `ofConsole` if the console made it with its session cookie. */
export const sourceOf = (
  proxies: Proxies,
  request: HttpServerRequest.HttpServerRequest,
  ofConsole: boolean,
): Source => {
  let address: string | undefined
  return {
    get address() {
      address ??=
        nearest(proxies, Option.getOrUndefined(request.remoteAddress), request.headers)?.toString() ?? "unknown"
      return address
    },
    via: ofConsole ? "console" : request.url.startsWith("/api/") ? "rest" : "page",
    tool: null,
    userAgent: request.headers["user-agent"] ?? null,
  }
}

export const clientAddress = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const proxies = yield* TrustedProxies
  return resolve(proxies, Option.getOrUndefined(request.remoteAddress), request.headers)
})
