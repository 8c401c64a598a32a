/** Proxies between clients and the service that change nothing and record the traffic: HTTP as calls, other protocols as text. */
import { createServer, type IncomingHttpHeaders, request } from "node:http"
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net"

export interface RecordedCall {
  readonly method: string
  readonly path: string
  readonly token: string | undefined
  readonly body: string
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly answer: string
}

/** The text that both sides of one connection sent. */
export interface RecordedConversation {
  said: string
  answered: string
}

const listening = async (server: { listen: (port: number, host: string, done: () => void) => unknown }) => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
}

export const recordHttp = async (port: number) => {
  const seen: Array<RecordedCall> = []
  const server = createServer((incoming, outgoing) => {
    const body: Array<Buffer> = []
    incoming.on("data", (chunk: Buffer) => body.push(chunk))
    incoming.on("end", () => {
      const onward = request(
        { port, host: "127.0.0.1", method: incoming.method, path: incoming.url, headers: incoming.headers },
        (response) => {
          const answer: Array<Buffer> = []
          response.on("data", (chunk: Buffer) => answer.push(chunk))
          response.on("end", () => {
            seen.push({
              method: incoming.method!,
              path: incoming.url!.split("?")[0]!,
              token: /^Bearer (\S+)$/.exec(incoming.headers.authorization ?? "")?.[1],
              body: Buffer.concat(body).toString(),
              status: response.statusCode!,
              headers: response.headers,
              answer: Buffer.concat(answer).toString(),
            })
            outgoing.writeHead(response.statusCode!, response.headers).end(Buffer.concat(answer))
          })
        },
      )
      onward.end(Buffer.concat(body))
    })
  })
  await listening(server)
  return {
    seen,
    port: (server.address() as AddressInfo).port,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

export const recordTcp = async (port: number) => {
  const seen: Array<RecordedConversation> = []
  const open = new Set<Socket>()
  const server = createTcpServer((client) => {
    const talk: RecordedConversation = { said: "", answered: "" }
    seen.push(talk)
    const service = connect(port, "127.0.0.1")
    for (const [from, to, name] of [
      [client, service, "said"],
      [service, client, "answered"],
    ] as const) {
      open.add(from)
      from.on("data", (chunk: Buffer) => {
        talk[name] += chunk.toString("latin1")
        to.write(chunk)
      })
      from.on("end", () => to.end())
      from.on("error", () => to.destroy())
      from.on("close", () => open.delete(from))
    }
  })
  await listening(server)
  return {
    seen,
    port: (server.address() as AddressInfo).port,
    stop: () => {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}
