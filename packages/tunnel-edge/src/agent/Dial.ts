/**
 * Dials one connection from an agent to an edge: an HTTP/1.1 upgrade to `idt/1`, or a WebSocket if an intermediary
 * blocks other upgrades. Node's agent applies the proxy settings of the environment (`HTTPS_PROXY`, `NO_PROXY`).
 */
import { lookup as resolve } from "node:dns"
import * as http from "node:http"
import * as https from "node:https"
import type { LookupFunction } from "node:net"
import type { Duplex } from "node:stream"
import { createWebSocketStream, WebSocket } from "ws"
import { path, upgradeToken, webSocketProtocol } from "../protocol/Manifest.ts"

export interface Carrier {
  readonly duplex: Duplex
  /** Bytes received together with the response to the upgrade. */
  readonly ahead: Buffer
}

interface Target {
  /** `https://connect.{tunnel_domain}`, in Development `http://connect.tunnel.localhost:8081`. */
  readonly edge: string
  readonly headers: Readonly<Record<string, string>>
  /** PEM certificate authority to trust in addition to the system's. */
  readonly ca: string | undefined
  readonly webSocket: boolean
  /** Index of the edge address to try first, so that the links of one agent reach different edges. */
  readonly offset: number
}

/** The edge refused this agent with a problem document. */
export class TunnelRefused extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** The response came from an intermediary that does not support the upgrade, not from an edge. */
export class NotUnderstood extends Error {}

const dialMillis = 10_000
const refusalBytes = 64 * 1024

const lookupFrom =
  (offset: number): LookupFunction =>
  (hostname, options, done) => {
    // `*.localhost` always resolves to the loopback address (RFC 6761 section 6.3).
    if (hostname.endsWith("localhost")) {
      return options.all === true ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4)
    }
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null || found.length === 0) return done(error ?? new Error(`${hostname} has no address`), "")
      const at = offset % found.length
      const turned = [...found.slice(at), ...found.slice(0, at)]
      return options.all === true ? done(null, turned) : done(null, turned[0]!.address, turned[0]!.family)
    })
  }

const optionsOf = ({ edge, headers, ca, offset }: Target) => {
  const secure = edge.startsWith("https:")
  return {
    secure,
    headers,
    lookup: lookupFrom(offset),
    timeout: dialMillis,
    agent: secure ? new https.Agent({ proxyEnv: process.env }) : new http.Agent(),
    ...(ca === undefined ? {} : { ca }),
  }
}

const refusalOf = (status: number, body: string): Error => {
  try {
    const { code, detail } = JSON.parse(body) as { code?: unknown; detail?: unknown }
    if (typeof code === "string") return new TunnelRefused(status, code, String(detail))
  } catch {
    // A body that is no problem document did not come from the edge.
  }
  return new NotUnderstood(`the edge answered ${status}`)
}

const read = (answer: http.IncomingMessage, done: (error: Error) => void) => {
  let body = ""
  answer.on("data", (chunk: Buffer) => {
    body += chunk.toString()
    if (body.length > refusalBytes) answer.destroy()
  })
  answer.on("close", () => done(refusalOf(answer.statusCode ?? 0, body)))
}

const upgraded = (target: Target) =>
  new Promise<Carrier>((resolve, reject) => {
    const { secure, headers, ...options } = optionsOf(target)
    const request = (secure ? https : http).request(new URL(path, target.edge), {
      ...options,
      headers: { ...headers, connection: "Upgrade", upgrade: upgradeToken },
    })
    request.on("upgrade", (_, duplex, ahead) => resolve({ duplex, ahead }))
    request.on("response", (answer) => read(answer, reject))
    request.on("timeout", () => request.destroy(new Error("the edge does not answer")))
    request.on("error", reject)
    request.end()
  })

const webSocket = (target: Target) =>
  new Promise<Carrier>((resolve, reject) => {
    const { secure, timeout, ...options } = optionsOf(target)
    const url = new URL(path, target.edge)
    url.protocol = secure ? "wss:" : "ws:"
    const socket = new WebSocket(url, webSocketProtocol, {
      ...options,
      handshakeTimeout: timeout,
      perMessageDeflate: false,
    })
    socket.on("open", () => resolve({ duplex: createWebSocketStream(socket), ahead: Buffer.alloc(0) }))
    socket.on("unexpected-response", (_, answer) => read(answer, reject))
    socket.on("error", reject)
  })

export const dial = (target: Target): Promise<Carrier> => (target.webSocket ? webSocket(target) : upgraded(target))
