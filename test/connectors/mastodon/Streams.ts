/**
 * The streaming API of {@link module:Server}: a WebSocket whose subprotocol is the token, with one message per notification, as recorded
 * from a real server.
 */
import type { IncomingMessage, Server } from "node:http"
import { type WebSocket, WebSocketServer } from "ws"
import type { Kind } from "./Settings.ts"
import type { Account, Notification, World } from "./World.ts"

export const attachStreams = (
  server: Server,
  world: World,
  parts: {
    readonly accountOf: (token: string) => Account | undefined
    /** Returns a function that handles the stream instead, if there is one. */
    readonly instead: () => ((socket: WebSocket) => void) | undefined
    readonly opens: () => boolean
    readonly kind: () => Kind
  },
) => {
  const sockets = new WebSocketServer({ noServer: true })
  const open = new Map<WebSocket, Account>()
  let opened = 0
  let requests = 0

  server.on("upgrade", (request: IncomingMessage, socket, head) => {
    const url = new URL(request.url ?? "/", world.base)
    const refuse = (status: string) => socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`)
    requests++
    if (!parts.opens() || url.pathname !== "/api/v1/streaming") return refuse("404 Not Found")
    // Mastodon accepts the token in every way, Pleroma only as the subprotocol. GoToSocial does not confirm a token as subprotocol.
    const given = {
      header: /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1],
      protocol: request.headers["sec-websocket-protocol"],
    }
    const token = parts.kind() === "pleroma" ? given.protocol : (given.header ?? given.protocol)
    const account = token === undefined ? undefined : parts.accountOf(token)
    if (account === undefined) return refuse("401 Unauthorized")
    if (url.searchParams.get("stream") !== "user:notification") return refuse("400 Bad Request")
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      opened++
      accepted.on("error", () => {})
      const harm = parts.instead()
      if (harm !== undefined) return harm(accepted)
      open.set(accepted, account)
      accepted.on("close", () => open.delete(accepted))
    })
  })

  world.told = (account: Account, notification: Notification) => {
    for (const [socket, of] of open) {
      if (of !== account) continue
      socket.send(
        JSON.stringify({
          stream: ["user:notification"],
          event: "notification",
          payload: JSON.stringify(world.notification(notification)),
        }),
      )
    }
  }

  return {
    /** Number of streams opened so far. */
    opened: () => opened,
    open: () => open.size,
    asked: () => requests,
    /** Closes all streams, as a restart of the server does. */
    drop: () => {
      for (const socket of open.keys()) socket.terminate()
    },
    stop: () => {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
    },
  }
}
