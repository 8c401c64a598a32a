/**
 * One public HTTP/1.1 connection, which is one stream to the agent. Request heads are judged and rewritten
 * ({@link RequestSplitter}); response bytes pass as they are, watched only for whether there were any and for the answer
 * to an upgrade.
 */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { couple } from "../protocol/Couple.ts"
import { kind, reset } from "../protocol/Manifest.ts"
import type { MuxStream } from "../protocol/Mux.ts"
import { refusal } from "./Answers.ts"
import { type Head, Refusal, RequestSplitter } from "./RequestHead.ts"

/** Where a request goes, or what is answered in its place. */
export type Route =
  | { readonly _tag: "Stream"; readonly open: (kind: number, meta: object) => MuxStream | undefined }
  | { readonly _tag: "Answer"; readonly bytes: Buffer }

export interface Front {
  readonly route: (head: Head) => Promise<Route>
  /** The answer where the stream came to nothing. */
  readonly failed: (head: Head, code: number) => Buffer
  /** An agent asks for a link: the socket is its from here on. */
  readonly isLink: (head: Head) => boolean
  readonly link: (head: Head, socket: Socket, rest: Buffer) => void
}

const firstByteMillis = 60_000
/** A connection without a whole head after this long is closed; so is one that is idle between requests. */
const headMillis = 30_000
const idleMillis = 120_000

/** The status of the first final answer in what arrived so far; undefined while that is not known. */
const finalStatus = (text: string): number | undefined => {
  let rest = text
  while (true) {
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(rest)?.[1]
    if (status === undefined) return undefined
    if (status === "101" || !status.startsWith("1")) return Number(status)
    const end = rest.indexOf("\r\n\r\n")
    if (end < 0) return undefined
    rest = rest.slice(end + 4)
  }
}

/** The name a TLS client asked for (SNI); undefined where it named none, or there is no TLS. */
const serverName = (socket: Socket): string | undefined =>
  socket instanceof TLSSocket && typeof socket.servername === "string" ? socket.servername.toLowerCase() : undefined

export const serve = (socket: Socket, proto: "http" | "https", front: Front): void => {
  const client = socket.remoteAddress?.replace(/^::ffff:/, "") ?? "unknown"
  let first: Head | undefined
  let stream: MuxStream | undefined
  let responded = false
  let awaiting = ""
  let watching = false
  const early: Array<Buffer> = []

  const end = (bytes: Buffer) => {
    clearTimeout(late)
    // What the client still sends is read and dropped, or its own reset would take our answer with it.
    socket.removeAllListeners("data")
    socket.resume()
    if (!socket.destroyed) socket.end(bytes)
    setTimeout(() => socket.destroy(), 2_000).unref()
  }
  const refuse = (error: unknown) => {
    stream?.reset(reset.cancel)
    if (responded || !(error instanceof Refusal)) socket.resetAndDestroy()
    else end(refusal(error.status, error.message))
  }
  let late: NodeJS.Timeout | undefined = setTimeout(() => socket.destroy(), headMillis)

  const out = (bytes: Buffer) => {
    if (stream === undefined) early.push(bytes)
    else if (!stream.write(bytes)) socket.pause()
  }
  const splitter = new RequestSplitter(
    () => ({ client, proto }),
    (head) => {
      if (first !== undefined) return
      const named = serverName(socket)
      if (named !== undefined && named !== head.host)
        throw new Refusal(421, "Host is not the name that TLS was opened for")
      first = head
      clearTimeout(late)
      socket.pause()
      if (front.isLink(head)) {
        // After this head the splitter holds back whatever comes; it is the link's.
        setImmediate(() => {
          socket.removeAllListeners()
          front.link(head, socket, splitter.rest())
        })
        return
      }
      watching = head.upgrade
      void front.route(head).then(
        (route) => settle(head, route),
        () => socket.destroy(),
      )
    },
    out,
  )
  const feed = (chunk: Buffer) => {
    try {
      splitter.feed(chunk)
    } catch (error) {
      refuse(error)
    }
  }
  socket.on("data", feed)
  socket.on("error", () => stream?.reset(reset.cancel))
  socket.setNoDelay(true)

  const settle = (head: Head, route: Route) => {
    if (socket.destroyed) return
    if (route._tag === "Answer") return end(route.bytes)
    const opened = route.open(kind.http, { peer: client, proto })
    if (opened === undefined) return end(front.failed(head, reset.overloaded))
    stream = opened
    late = setTimeout(() => {
      if (responded) return
      opened.reset(reset.local_timeout)
      end(front.failed(head, reset.local_timeout))
    }, firstByteMillis)
    socket.removeListener("data", feed)
    couple(socket, opened, {
      outgoing: feed,
      incoming: (bytes) => {
        if (!responded) {
          responded = true
          clearTimeout(late)
          socket.setTimeout(idleMillis, () => socket.destroy())
        }
        if (!watching) return
        awaiting += bytes.toString("latin1")
        const status = finalStatus(awaiting)
        if (status === undefined && awaiting.length < 64 * 1024) return
        watching = false
        awaiting = ""
        if (status === 101) socket.setTimeout(0)
        setImmediate(() => splitter.upgraded(status === 101))
      },
      onReset: (code) => {
        if (responded) socket.resetAndDestroy()
        else end(front.failed(head, code))
      },
    })
    for (const bytes of early.splice(0)) opened.write(bytes)
    socket.resume()
  }
}
