/**
 * Two Node processes that only forward bytes over one TLS connection per client: the lower bound for the cost of a
 * tunnel. Each prints its port.
 */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net"
import { connect as connectSecure, createServer as createSecureServer } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"

const host = "127.0.0.1"
const [role, port] = [process.argv[2], Number(process.argv[3])]

const join = (one: Socket, other: Socket) => {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.setNoDelay(true)
    from.on("data", (chunk) => {
      if (!to.write(chunk)) from.pause()
    })
    to.on("drain", () => from.resume())
    from.on("error", () => {})
    from.on("close", () => to.destroy())
  }
}

const listening = (server: Server) => server.listen(0, host, () => console.log((server.address() as AddressInfo).port))

if (role === "agent") {
  const own = selfSigned(["localhost"], new Date())
  listening(createSecureServer(own, (socket) => join(socket, connect(port, host))))
} else {
  listening(createServer((socket) => join(socket, connectSecure({ port, host, rejectUnauthorized: false }))))
}
