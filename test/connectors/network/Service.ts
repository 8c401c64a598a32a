/**
 * A server on a free port with a DID, on which the replacements for Bluesky's services are built. It identifies the calling account by
 * service authentication (https://atproto.com/specs/xrpc).
 */
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"

export interface ServiceRequest {
  /** The method's lexicon id. */
  readonly method: string
  readonly query: URLSearchParams
  readonly body: any
  /** The calling account. */
  readonly did: string
}

export class Refusal extends Error {
  readonly status: number
  readonly error: string
  constructor(status: number, error: string, message: string) {
    super(message)
    this.status = status
    this.error = error
  }
}

export interface Service {
  readonly url: string
  readonly did: string
  readonly close: () => Promise<void>
}

export const open = async (id: string, answer: (serviceRequest: ServiceRequest) => unknown): Promise<Service> => {
  const server = createServer(async (request, response) => {
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
    try {
      const url = new URL(request.url!, "http://localhost")
      if (url.pathname === "/.well-known/did.json") return void json(200, documentOf(service.did, id, service.url))
      const method = url.pathname.replace("/xrpc/", "")
      const text = await bodyOf(request)
      const did = askedFor(request.headers.authorization, method, service.did)
      json(
        200,
        await answer({ method, query: url.searchParams, body: text === "" ? undefined : JSON.parse(text), did }),
      )
    } catch (error) {
      if (error instanceof Refusal) return void json(error.status, { error: error.error, message: error.message })
      console.error(error)
      json(500, { error: "InternalServerError", message: String(error) })
    }
  })
  const port = await listening(server)
  const service: Service = {
    url: `http://localhost:${port}`,
    did: `did:web:localhost%3A${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return service
}

const documentOf = (did: string, id: string, serviceEndpoint: string) => ({
  "@context": ["https://www.w3.org/ns/did/v1"],
  id: did,
  service: [{ id: `#${id}`, type: "BskyService", serviceEndpoint }],
})

/** Returns the account of the token's claims. The signature is not verified, since only the account server can reach this port. */
const askedFor = (authorization: string | undefined, method: string, audience: string): string => {
  const [, claims] = (authorization ?? "").replace(/^Bearer /, "").split(".")
  if (claims === undefined) throw new Refusal(401, "AuthMissing", "Authentication Required")
  const { iss, aud, lxm } = JSON.parse(Buffer.from(claims, "base64url").toString())
  if (aud.split("#")[0] !== audience) throw new Refusal(401, "BadJwtAudience", `The token is for ${aud}.`)
  if (lxm !== method) throw new Refusal(401, "BadJwtLexiconMethod", `The token is for ${lxm}.`)
  return iss
}

const bodyOf = async (request: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

export const listening = (server: Server, port = 0) =>
  new Promise<number>((resolve) =>
    server.listen(port, "localhost", () => resolve((server.address() as AddressInfo).port)),
  )
