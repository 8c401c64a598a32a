/** The Tunnel of an Identity: its address, its links, its traffic and its settings. */
import ipaddr from "ipaddr.js"
import { Schema } from "effect"
import { boundedList } from "../BoundedList.ts"
import { Line, ShownUrl, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

/** An address range such as `192.0.2.0/24` or `2001:db8::/32`, or a single address. */
const Network = Schema.String.check(Schema.isMaxLength(64))

/** Parses a range into address and prefix length in bits; returns undefined if it is not valid. */
export const parseNetwork = (
  text: string,
): { readonly address: string; readonly bits: number; readonly family: "ipv4" | "ipv6" } | undefined => {
  if (!ipaddr.isValid(text) && !ipaddr.isValidCIDR(text)) return undefined
  const [address, bits] = text.includes("/") ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), undefined]
  const family = address.kind()
  // The library would read `10.1` as `10.0.0.1`, which is never intended.
  if (family === "ipv4" && !/^\d+\.\d+\.\d+\.\d+(\/|$)/.test(text)) return undefined
  return { address: address.toString(), bits: bits ?? (family === "ipv4" ? 32 : 128), family }
}

/** `preserve` keeps the Host field, `local` uses the agent's own port, any other value is sent literally. */
const HostHeader = Line(255).check(
  Schema.isPattern(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?$/u, {
    expected: "preserve, local or a host",
  }),
)

const Networks = boundedList(Network, 100, (text) => parseNetwork(text) !== undefined, "an address or a CIDR range")
/** A user name has no colon (RFC 7617 section 2). */
const Username = Line(128).check(Schema.isPattern(/^[^:]*$/u, { expected: "a user name without a colon" }))

/** Returns the origin that a text names, or undefined. */
export const originOf = (text: string): string | undefined => {
  const url = URL.parse(text)
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && `${url.origin}/` === url.href
  return isOrigin ? url.origin : undefined
}
const isHandle = (text: string) => /^@?[A-Za-z0-9][A-Za-z0-9-]{0,62}$/.test(text)

const CallerList = boundedList(
  Text.check(Schema.isMaxLength(300)),
  100,
  (text) => originOf(text) !== undefined || isHandle(text),
  "an origin such as https://agent.example, or a Handle",
).check(Schema.isMinLength(1))

/**
 * Which callers the edge admits: everyone, everyone who signs requests (Web Bot Auth), or the agents with these origins
 * and the Identities of this service with these Handles.
 */
const Callers = Schema.Union([Schema.Literals(["anyone", "signed"]), CallerList])

export const TunnelSettings = Schema.Struct({
  host_header: HostHeader,
  /** `passthrough` forwards the TLS connection of the hostname to the agent without terminating it. */
  tls: Schema.Literals(["terminate", "passthrough"]),
  /** Rejects clients with other addresses; an empty list allows everyone. */
  allowed_networks: Networks,
  /** HTTP Basic authentication at the edge. The response never contains `password`. */
  basic_auth: Schema.NullOr(Schema.Struct({ username: Username })),
  /** Whether each connection to the TCP port starts with a PROXY protocol header (version 1). */
  proxy_protocol: Schema.Boolean,
  callers: Callers,
}).annotate({ identifier: "TunnelSettings" })
export type TunnelSettings = typeof TunnelSettings.Type

export const defaultSettings: TunnelSettings = {
  host_header: "preserve",
  tls: "terminate",
  allowed_networks: [],
  basic_auth: null,
  proxy_protocol: false,
  callers: "anyone",
}

const decodeSettings = Schema.decodeUnknownEffect(TunnelSettings)

/** Decodes stored settings. Members that an earlier version did not store have their default. */
export const storedSettings = (stored: unknown) =>
  decodeSettings(typeof stored === "object" ? { ...defaultSettings, ...stored } : stored)

/** A change of settings; each given member replaces its current value. */
export const TunnelPatch = Schema.Struct({
  host_header: Schema.optionalKey(HostHeader),
  tls: Schema.optionalKey(Schema.Literals(["terminate", "passthrough"])),
  allowed_networks: Schema.optionalKey(Networks),
  basic_auth: Schema.optionalKey(Schema.NullOr(Schema.Struct({ username: Username, password: Line(256) }))),
  proxy_protocol: Schema.optionalKey(Schema.Boolean),
  callers: Schema.optionalKey(Callers),
})
export type TunnelPatch = typeof TunnelPatch.Type

export const Tunnel = Schema.Struct({
  hostname: Schema.String,
  port: Schema.NullOr(Schema.Int),
  url: ShownUrl,
  connected: Schema.Boolean,
  links: Schema.Array(Schema.Struct({ edge: Schema.String, since: Timestamp, client: Schema.String })),
  /** Bytes to and from the agent over HTTP and TCP, with a delay of some seconds. */
  usage: Schema.Struct({
    bytes_in: Schema.Int,
    bytes_out: Schema.Int,
    requests: Schema.Int,
    since: Timestamp,
  }),
  settings: TunnelSettings,
}).annotate({ identifier: "Tunnel" })
export type Tunnel = typeof Tunnel.Type
