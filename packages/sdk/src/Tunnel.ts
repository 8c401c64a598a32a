/**
 * A public address for a program: opens a tunnel with the package `@agent-identity/tunnel`, which is loaded when a tunnel is
 * opened, so that other programs do not need it.
 */
import { apiErrorOf } from "./Errors.ts"

/** Handles a request that arrives at the public address. */
export type TunnelHandler = (request: Request) => Response | Promise<Response>

interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

interface NodeResponse {
  readonly writeHead: (status: number, headers: Record<string, string | Array<string>>) => unknown
  readonly write: (chunk: Uint8Array) => boolean
  readonly on: (event: "drain" | "close", listener: () => void) => unknown
  readonly end: () => unknown
  readonly destroy: () => unknown
  readonly destroyed: boolean
}

interface Address {
  readonly hostname: string
  readonly url: string
  readonly tcp_port: number | null
}

/** The function of `@agent-identity/tunnel` of this name. */
export type ConnectTunnel = (options: {
  readonly key: string
  readonly handle: string
  readonly edge: string
  readonly client: string
  readonly port?: number
  readonly handler?: (request: NodeRequest, response: NodeResponse) => void
}) => {
  readonly ready: Promise<Address>
  readonly ended: Promise<(Error & { readonly status: number; readonly code: string }) | undefined>
  readonly close: () => Promise<void>
  readonly drain: (millis?: number) => Promise<void>
}

export interface TunnelOptions {
  /** The edge, if it differs from the one of the service. */
  readonly edge?: string
  /** The function of `@agent-identity/tunnel`, for a bundler that needs a static import. */
  readonly connectTunnel?: ConnectTunnel
}

export interface OpenTunnel {
  /** The public address. */
  readonly url: string
  readonly hostname: string
  /** The TCP port of the Identity, if the deployment has them. */
  readonly tcpPort: number | null
  /** Resolves after `close` or `drain`. Rejects with an `ApiError` if the service ends the tunnel permanently. */
  readonly ended: Promise<void>
  /** Closes the tunnel immediately. */
  readonly close: () => Promise<void>
  /** Stops accepting requests, waits up to `millis` milliseconds (default 30,000) for those in flight, then closes. */
  readonly drain: (millis?: number) => Promise<void>
}

/** Returns the parts of a body as a stream that reads on when its consumer does. */
const streamOf = (parts: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> => {
  const iterator = parts[Symbol.asyncIterator]()
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await iterator.next()
      if (done === true) controller.close()
      else controller.enqueue(new Uint8Array(value))
    },
    cancel: async () => {
      await iterator.return?.()
    },
  })
}

const requestOf = (incoming: NodeRequest): Request => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    for (const one of typeof value === "string" ? [value] : (value ?? [])) headers.append(name, one)
  }
  const { method = "GET", url = "/" } = incoming
  const scheme = headers.get("x-forwarded-proto") ?? "http"
  const target = new URL(url.replace(/^\/+/, "/"), `${scheme}://${headers.get("host") ?? "localhost"}`)
  const hasBody = method !== "GET" && method !== "HEAD"
  return new Request(target, {
    method,
    headers,
    ...(hasBody ? { body: streamOf(incoming), duplex: "half" } : {}),
  } as RequestInit)
}

const respond = async (response: Response, outgoing: NodeResponse): Promise<void> => {
  const headers: Record<string, string | Array<string>> = Object.fromEntries(response.headers)
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) headers["set-cookie"] = cookies
  outgoing.writeHead(response.status, headers)
  const reader = response.body?.getReader()
  let resume = () => {}
  outgoing.on("drain", () => resume())
  outgoing.on("close", () => {
    resume()
    // Tells the handler's stream that the client left, also while it has nothing to send. After the end it does nothing.
    reader?.cancel().catch(() => {})
  })
  while (reader !== undefined) {
    const { done, value } = await reader.read()
    if (done || outgoing.destroyed) break
    if (!outgoing.write(value)) await new Promise<void>((resolve) => void (resume = resolve))
  }
  outgoing.end()
}

const listenerOf = (handler: TunnelHandler) => (incoming: NodeRequest, outgoing: NodeResponse) => {
  const answer = async () => respond(await handler(requestOf(incoming)), outgoing)
  answer().catch((error: unknown) => {
    // oxlint-disable-next-line no-console -- as a server of Node, Deno or Bun reports the error of a handler
    console.error(error)
    try {
      outgoing.writeHead(500, {})
      outgoing.end()
    } catch {
      // The head was sent: only an aborted body tells the client.
      outgoing.destroy()
    }
  })
}

const load = async (): Promise<ConnectTunnel> => {
  // A variable keeps bundlers from including the package in programs that open no tunnel.
  const name = "@agent-identity/tunnel"
  try {
    const { connectTunnel } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as {
      readonly connectTunnel: ConnectTunnel
    }
    return connectTunnel
  } catch (cause) {
    throw new Error(`A tunnel needs a package: npm install ${name}`, { cause })
  }
}

/** Returns the address to which an agent connects: `connect` in the domain of the tunnels. */
const edgeOf = ({ hostname, url }: { readonly hostname: string; readonly url: string }): string => {
  const edge = new URL(url)
  edge.hostname = hostname.replace(/^[^.]+/, "connect")
  return edge.origin
}

const refusalOf = (error: unknown): unknown => {
  const { status, code, message } = error as { status?: number; code?: string; message?: string }
  if (status === undefined || code === undefined) return error
  return apiErrorOf(status, { code, title: code, detail: message ?? code, agent_hint: "stop" })
}

/** Opens a tunnel and returns when its address works. */
export const openTunnel = async (
  target: number | TunnelHandler,
  settings: {
    readonly key: string
    readonly handle: string
    readonly address: { readonly hostname: string; readonly url: string }
  },
  options: TunnelOptions = {},
): Promise<OpenTunnel> => {
  const connect = options.connectTunnel ?? (await load())
  const tunnel = connect({
    key: settings.key,
    handle: settings.handle,
    edge: options.edge ?? edgeOf(settings.address),
    client: "agent-identity-sdk",
    ...(typeof target === "number" ? { port: target } : { handler: listenerOf(target) }),
  })
  const ended = tunnel.ended.then((refused) => {
    if (refused !== undefined) throw refusalOf(refused)
  })
  // A program that does not read `ended` must not fail by it.
  ended.catch(() => undefined)
  const { hostname, url, tcp_port } = await tunnel.ready.catch((error: unknown) => {
    throw refusalOf(error)
  })
  return {
    url,
    hostname,
    tcpPort: tcp_port,
    ended,
    close: () => tunnel.close(),
    drain: (millis) => tunnel.drain(millis),
  }
}
