/** Access rules of a Tunnel: the networks that may connect and the password (RFC 7617). */
import { createHash, timingSafeEqual } from "node:crypto"
import { BlockList, isIPv6 } from "node:net"
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { parseNetwork } from "@svc/domain/tunnel/Tunnel"

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

/** Returns whether a raw connection is allowed. Raw bytes cannot present a password, so a password blocks them. */
export const allowsRaw = (standing: Standing | undefined, client: string): boolean =>
  standing !== undefined && standing.passwordHash === undefined && allowsClient(standing, client)

export const allowsCredentials = (standing: Standing, authorization: string | undefined): boolean => {
  if (standing.passwordHash === undefined) return true
  const encoded = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(authorization ?? "")?.[1]
  if (encoded === undefined) return false
  const given = createHash("sha256").update(Buffer.from(encoded, "base64")).digest()
  return timingSafeEqual(given, standing.passwordHash)
}
