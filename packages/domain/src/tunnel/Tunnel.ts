/** The Tunnel of an Identity: its address, the links that agents hold, what went through it, and its settings. */
import ipaddr from "ipaddr.js"
import { Schema } from "effect"
import { boundedList } from "../BoundedList.ts"
import { Line, ShownUrl } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

/** A range of addresses: `192.0.2.0/24`, `2001:db8::/32`, or one address. */
const Network = Schema.String.check(Schema.isMaxLength(64))

/** Parses a range into address and prefix length in bits; returns undefined if it is not valid. */
export const parseNetwork = (
  text: string,
): { readonly address: string; readonly bits: number; readonly family: "ipv4" | "ipv6" } | undefined => {
  if (!ipaddr.isValid(text) && !ipaddr.isValidCIDR(text)) return undefined
  const [address, bits] = text.includes("/") ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), undefined]
  const family = address.kind()
  // The library reads `10.1` as `10.0.0.1`, which nobody means.
  if (family === "ipv4" && !/^\d+\.\d+\.\d+\.\d+(\/|$)/.test(text)) return undefined
  return { address: address.toString(), bits: bits ?? (family === "ipv4" ? 32 : 128), family }
}

/** `preserve` passes Host on, `local` names the agent's own port, anything else is sent as it stands. */
const HostHeader = Line(255).check(
  Schema.isPattern(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?$/u, {
    expected: "preserve, local or a host",
  }),
)

const Networks = boundedList(Network, 100, (text) => parseNetwork(text) !== undefined, "an address or a CIDR range")
/** A user name has no colon (RFC 7617 section 2). */
const Username = Line(128).check(Schema.isPattern(/^[^:]*$/u, { expected: "a user name without a colon" }))

export const TunnelSettings = Schema.Struct({
  host_header: HostHeader,
  /** `passthrough` leads TLS for this hostname to the agent unopened. */
  tls: Schema.Literals(["terminate", "passthrough"]),
  /** Clients of other addresses are refused; none in the list: everyone may come. */
  allowed_networks: Networks,
  /** HTTP Basic authentication at the edge; `password` is never read back. */
  basic_auth: Schema.NullOr(Schema.Struct({ username: Username })),
  /** A PROXY protocol header (version 1) ahead of each connection of the TCP port. */
  proxy_protocol: Schema.Boolean,
}).annotate({ identifier: "TunnelSettings" })
export type TunnelSettings = typeof TunnelSettings.Type

export const defaultSettings: TunnelSettings = {
  host_header: "preserve",
  tls: "terminate",
  allowed_networks: [],
  basic_auth: null,
  proxy_protocol: false,
}

/** Members of the settings to change; each replaces the present value whole. */
export const TunnelPatch = Schema.Struct({
  host_header: Schema.optionalKey(HostHeader),
  tls: Schema.optionalKey(Schema.Literals(["terminate", "passthrough"])),
  allowed_networks: Schema.optionalKey(Networks),
  basic_auth: Schema.optionalKey(Schema.NullOr(Schema.Struct({ username: Username, password: Line(256) }))),
  proxy_protocol: Schema.optionalKey(Schema.Boolean),
})
export type TunnelPatch = typeof TunnelPatch.Type

export const Tunnel = Schema.Struct({
  hostname: Schema.String,
  port: Schema.NullOr(Schema.Int),
  url: ShownUrl,
  connected: Schema.Boolean,
  links: Schema.Array(Schema.Struct({ edge: Schema.String, since: Timestamp, client: Schema.String })),
  /** Bytes to the agent and from it, requests and TCP connections, as edges counted them up to some seconds ago. */
  usage: Schema.Struct({
    bytes_in: Schema.Int,
    bytes_out: Schema.Int,
    requests: Schema.Int,
    since: Timestamp,
  }),
  settings: TunnelSettings,
}).annotate({ identifier: "Tunnel" })
export type Tunnel = typeof Tunnel.Type
