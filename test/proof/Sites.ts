/** Verifies signed requests as sites do: with Cloudflare's `web-bot-auth`, and with the key of the directory that the request names. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import type { JWK } from "jose"
import { verify } from "web-bot-auth"
import { verifierFromJWK } from "web-bot-auth/crypto"
import { fetchPublic } from "../harness/Public.ts"

export const directoryPath = "/.well-known/http-message-signatures-directory"

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns the origin that the request names, and the member of `Signature-Agent` without its key. */
const agentOf = (header: string) => {
  const [, item, origin] = /^sig1=("([^"]+)")$/.exec(header) ?? []
  if (item === undefined || origin === undefined) throw new Error(`${header} is not a dictionary with sig1`)
  return { item, origin }
}

/**
 * Verifies the request with `web-bot-auth`, and returns its origin. The library reads the whole field where the signature
 * names a member (RFC 9421 section 2.1.2), so it is given the member.
 */
export const verifiedOrigin = async ({ method, url, headers }: Seen, jwk: JWK): Promise<string> => {
  const { item, origin } = agentOf(headers["signature-agent"] ?? "")
  await verify({ method, url, headers: { ...headers, "signature-agent": item } }, await verifierFromJWK(jwk))
  return origin
}

/** Returns the directory of an Identity as a site reads it. */
export const directoryOf = async (edgePort: number, handle: string) => {
  const response = await fetchPublic(edgePort, handle, directoryPath)
  return { ...response, keys: (JSON.parse(response.body) as { readonly keys?: ReadonlyArray<JWK> }).keys ?? [] }
}

export const plainHeaders = (headers: IncomingHttpHeaders) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

/** A site that keeps what it received; `/moved` redirects. */
export const startSite = async () => {
  const seen: Array<Seen & { readonly body: string }> = []
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk: Buffer) => (body += chunk.toString()))
    request.on("end", () => {
      const { port } = server.address() as AddressInfo
      const url = `http://${request.headers.host ?? `127.0.0.1:${port}`}${request.url}`
      seen.push({ method: request.method!, url, headers: plainHeaders(request.headers), body })
      if (request.url === "/moved") return response.writeHead(303, { location: "/found?n=1" }).end()
      if (request.url === "/missing") return response.writeHead(404).end("nothing here")
      if (request.url === "/red") return response.end("\u001b[31mred")
      response.end("welcome")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
