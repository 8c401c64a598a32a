/** Access rules of a Tunnel: the networks that may connect, the password (RFC 7617) and the callers. */
import { createHash, timingSafeEqual } from "node:crypto"
import { BlockList, isIPv6 } from "node:net"
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { canonical } from "@svc/domain/handles/Handle"
import { originOf, parseNetwork } from "@svc/domain/tunnel/Tunnel"
import type { AgentCaller } from "./Route.ts"

const lists = new WeakMap<Standing, BlockList>()

const listOf = (standing: Standing): BlockList => {
  const present = lists.get(standing)
  if (present !== undefined) return present
  const list = new BlockList()
  for (const text of standing.settings.allowed_networks) {
    const { address, bits, family } = parseNetwork(text)!
    list.addSubnet(address, bits, family)
  }
  lists.set(standing, list)
  return list
}

export const allowsClient = (standing: Standing, client: string): boolean =>
  standing.settings.allowed_networks.length === 0 || listOf(standing).check(client, isIPv6(client) ? "ipv6" : "ipv4")

/**
 * Returns whether a raw connection is allowed. The edge does not read it, so a Tunnel that requires a password or signed
 * requests has none.
 */
export const allowsRaw = (standing: Standing | undefined, client: string): boolean =>
  standing !== undefined &&
  standing.passwordHash === undefined &&
  standing.settings.callers === "anyone" &&
  allowsClient(standing, client)

const names = new WeakMap<Standing, ReadonlySet<string>>()

/** Returns whether a caller may use the Tunnel; undefined is a caller that proved no identity. */
export const allowsCaller = (standing: Standing, caller: AgentCaller | undefined): boolean => {
  const { callers } = standing.settings
  if (callers === "anyone") return true
  if (caller === undefined) return false
  if (callers === "signed") return true
  const listed = names.get(standing) ?? new Set(callers.map((text) => originOf(text) ?? canonical(text)))
  names.set(standing, listed)
  return listed.has(caller.origin) || (caller.handle !== undefined && listed.has(canonical(caller.handle)))
}

export const allowsCredentials = (standing: Standing, authorization: string | undefined): boolean => {
  if (standing.passwordHash === undefined) return true
  const encoded = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(authorization ?? "")?.[1]
  if (encoded === undefined) return false
  const given = createHash("sha256").update(Buffer.from(encoded, "base64")).digest()
  return timingSafeEqual(given, standing.passwordHash)
}
