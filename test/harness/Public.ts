/** A client of the public side of tunnels: sends a request or raw bytes. */
import { request, type RequestOptions } from "node:http"
import { request as secureRequest } from "node:https"
import { connect } from "node:net"

export interface PublicResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | Array<string> | undefined>>
  readonly body: string
}

export interface PublicRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
  readonly trailers?: Readonly<Record<string, string>>
  /** Uses TLS and trusts this authority. */
  readonly ca?: string
  readonly servername?: string
  readonly host?: string
}

export const hostOf = (handle: string) => `${handle}.tunnel.localhost`

export const fetchPublic = (edgePort: number, handle: string, target: string, sent: PublicRequest = {}) =>
  new Promise<PublicResponse>((resolve, reject) => {
    const options: RequestOptions = {
      host: sent.host ?? "127.0.0.1",
      port: edgePort,
      // Uses a new connection, since a pooled one would carry another Host.
      agent: false,
      path: target,
      method: sent.method ?? "GET",
      headers: { host: hostOf(handle), ...sent.headers },
    }
    const outgoing = (
      sent.ca === undefined
        ? request(options)
        : secureRequest({ ...options, ca: sent.ca, servername: sent.servername ?? hostOf(handle) })
    ).on("response", (incoming) => {
      const chunks: Array<Buffer> = []
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
      incoming.on("end", () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      )
      incoming.on("error", reject)
    })
    outgoing.on("error", reject)
    if (sent.body !== undefined) outgoing.write(sent.body)
    if (sent.trailers !== undefined) outgoing.addTrailers(sent.trailers)
    outgoing.end()
  })

/** Sends bytes to the port and returns everything received until the end, or until `until` matches. */
export const sendRaw = (port: number, bytes: string | Buffer, until?: RegExp) =>
  new Promise<string>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
    let text = ""
    socket.setTimeout(5_000, () => socket.destroy())
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (until?.test(text) === true) socket.destroy()
    })
    socket.on("error", () => {})
    socket.on("close", () => resolve(text))
  })

/**
 * Opens a persistent connection that sends bytes and returns the input once it matches, and reports when it is closed.
 */
export const openConnection = async (port: number) => {
  const socket = connect(port, "127.0.0.1")
  let text = ""
  let onInput = () => {}
  socket.on("error", () => {})
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1")
    onInput()
  })
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()))
  return {
    closed,
    close: () => socket.destroy(),
    say: async (bytes: string, until: RegExp): Promise<string> => {
      text = ""
      socket.write(bytes)
      await Promise.race([closed, new Promise<void>((resolve) => (onInput = () => until.test(text) && resolve()))])
      return text
    },
  }
}
