/** Servers and names for tests of the guarded client. */
import { createServer, type RequestListener } from "node:http"
import type { Server, Socket } from "node:net"
import { GuardedClient, type GuardOptions, type Resolve } from "@svc/cluster/net/GuardedClient"
import { Effect } from "effect"

const servers: Array<Server> = []
const sockets: Array<Socket> = []
export const closeServers = async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))
}

export const listening = async (server: Server): Promise<number> => {
  servers.push(server)
  server.on("connection", (socket: Socket) => sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}
export const http = (listener: RequestListener) => listening(createServer(listener))

export const withClient = <A, E>(
  options: Partial<GuardOptions>,
  use: (client: GuardedClient["Service"]) => Effect.Effect<A, E>,
) =>
  Effect.runPromise(
    Effect.flatMap(Effect.service(GuardedClient), use).pipe(
      Effect.result,
      Effect.provide(GuardedClient.layer({ allowPrivate: true, timeoutMillis: 500, ...options })),
    ),
  )
export const post = (url: string, options: Partial<GuardOptions> = {}) =>
  withClient(options, (client) => client.post(url, { headers: { "content-type": "text/plain" }, body: "x" }))

export const failure = (error: string) => ({ _tag: "Failure", failure: { error } })

/** A resolver that returns the next address for each lookup. */
export const answering = (...addresses: ReadonlyArray<string>): Resolve & { asked: number } => {
  const resolve = Object.assign(
    ((_host, done) => {
      const address = addresses[Math.min(resolve.asked++, addresses.length - 1)]!
      done(null, [{ address, family: address.includes(":") ? 6 : 4 }])
    }) as Resolve,
    { asked: 0 },
  )
  return resolve
}

export const unrestricted = { request: Effect.void, isPermitted: () => true }
/** Requests a whole response of at most 100 bytes. */
export const ask = (url: string, options: Partial<GuardOptions> = {}) =>
  withClient(options, (client) =>
    client.ask(new URL(url), { method: "PUT", headers: { "x-given": "1" }, body: "sent", atMost: 100 }, unrestricted),
  )
export const nobody: Resolve = (_, done) => done(new Error("ENOTFOUND"), [])
export const empty: Resolve = (_, done) => done(null, [])
export const silentNames: Resolve = () => {}
