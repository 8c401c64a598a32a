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
import type { Passage } from "./Metering.ts"
import { encode, type Forwarded, type Head, Refusal, RequestSplitter } from "../protocol/RequestHead.ts"

/** Where a request goes, or what is answered in its place. */
export type Route =
  | { readonly _tag: "Answer"; readonly bytes: Buffer }
  | {
      readonly _tag: "Stream"
      readonly open: (kind: number, meta: object) => MuxStream | undefined
      /** What `Host` becomes; as sent where it is undefined. */
      readonly host: string | undefined
      readonly ownAuthorization: boolean
      /** What a further request on the connection is refused with; undefined where it may pass. */
      readonly refuses: (head: Head) => Buffer | undefined
      readonly passage: (cut: () => void) => Passage
    }

export interface Front {
  readonly route: (head: Head, client: string) => Promise<Route>
  /** The way that was taken led nowhere: another one, if there is. */
  readonly reroute: (head: Head, client: string) => Promise<Route>
  /** The answer where the stream came to nothing. */
  readonly failed: (head: Head, code: number) => Buffer
  /** The connection became one of another protocol. */
  readonly upgraded: (socket: Socket) => void
  /** An agent asks for a link: the socket is its from here on. */
  readonly isLink: (head: Head) => boolean
  readonly link: (head: Head, socket: Socket, rest: Buffer) => void
}

const firstByteMillis = 60_000
/** A connection without a whole head after this long is closed; so is one that is idle between requests. */
const headMillis = 30_000
const idleMillis = 120_000
/** Answers under way when a later request is refused have this long. */
const tailMillis = 10_000
/** A request is sent again over another way while it is no longer than this. */
const repeatableBytes = 64 * 1024

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

export const clientOf = (socket: Socket): string => socket.remoteAddress?.replace(/^::ffff:/, "") ?? "unknown"

export const serve = (socket: Socket, proto: "http" | "https", front: Front, begun?: Buffer): void => {
  const client = clientOf(socket)
  let first: Head | undefined
  let route: Extract<Route, { _tag: "Stream" }> | undefined
  let passage: Passage | undefined
  let stream: MuxStream | undefined
  let responded = false
  let awaiting = ""
  let watching = false
  /** What went out before the first answer, to be sent again; undefined once it is too much or no longer needed. */
  let sent: Array<Buffer> | undefined = []
  let sentBytes = 0

  const end = (bytes: Buffer) => {
    clearTimeout(late)
    // What the client still sends is read and dropped, or its own reset would take our answer with it.
    socket.removeAllListeners("data")
    socket.resume()
    if (!socket.destroyed) socket.end(bytes)
    setTimeout(() => socket.destroy(), 2_000).unref()
  }
  /** Answers to earlier requests come first, then this one, and the connection ends. */
  const endAfter = (bytes: Buffer, of: MuxStream) => {
    socket.removeAllListeners("data")
    socket.resume()
    of.onEnd = () => end(bytes)
    of.end()
    setTimeout(() => socket.destroy(), tailMillis).unref()
  }
  const refuse = (error: unknown) => {
    const bytes = error instanceof Refusal ? refusal(error.status, error.message) : undefined
    if (bytes !== undefined && stream === undefined) return end(bytes)
    if (bytes !== undefined && stream !== undefined && splitter.isBetween) return endAfter(bytes, stream)
    stream?.reset(reset.cancel)
    if (bytes === undefined || responded) socket.resetAndDestroy()
    else end(bytes)
  }
  let late: NodeJS.Timeout | undefined = setTimeout(() => socket.destroy(), headMillis)

  const out = (bytes: Buffer) => {
    if (sent !== undefined) {
      sentBytes += bytes.length
      if (sentBytes > repeatableBytes) sent = undefined
      else sent.push(bytes)
    }
    if (stream?.write(bytes) === false) socket.pause()
  }
  const forwarded = (): Forwarded => ({
    client,
    proto,
    host: route?.host,
    ownAuthorization: route?.ownAuthorization === true,
  })
  const forward = (head: Head) => {
    passage?.countRequest()
    out(encode(head, forwarded()))
  }

  const splitter = new RequestSplitter((head) => {
    if (first !== undefined) {
      const refused = route?.refuses(head)
      if (refused === undefined) return forward(head)
      // What came behind is of no use either.
      splitter.hold()
      return stream === undefined ? end(refused) : endAfter(refused, stream)
    }
    const named = serverName(socket)
    if (named !== undefined && named !== head.host)
      throw new Refusal(421, "Host is not the name that TLS was opened for")
    first = head
    clearTimeout(late)
    socket.pause()
    splitter.hold()
    if (front.isLink(head)) {
      setImmediate(() => {
        socket.removeAllListeners()
        front.link(head, socket, splitter.rest())
      })
      return
    }
    watching = head.upgrade
    void front.route(head, client).then(
      (found) => settle(head, found),
      () => socket.destroy(),
    )
  }, out)
  const feed = (chunk: Buffer) => {
    try {
      splitter.feed(chunk)
    } catch (error) {
      refuse(error)
    }
  }
  /** Before there is a stream. */
  let received = 0
  const feedFirst = (chunk: Buffer) => {
    received += chunk.length
    feed(chunk)
  }
  socket.on("data", feedFirst)
  socket.on("error", () => stream?.reset(reset.cancel))
  socket.on("end", () => {
    if (first === undefined) socket.end()
  })
  socket.on("close", () => {
    clearTimeout(late)
    passage?.close()
  })
  socket.setNoDelay(true)

  const settle = (head: Head, found: Route) => {
    if (socket.destroyed) return
    if (found._tag === "Answer") return end(found.bytes)
    route = found
    passage = found.passage(() => fail(head, reset.quota))
    passage.count("in", received)
    socket.removeListener("data", feedFirst)
    if (!connect(head, found)) return
    forward(head)
    try {
      splitter.release()
    } catch (error) {
      return refuse(error)
    }
    socket.resume()
  }

  const fail = (head: Head, code: number) => {
    stream?.reset(code === reset.quota ? reset.quota : reset.cancel)
    if (responded) socket.resetAndDestroy()
    else end(front.failed(head, code))
  }

  /** Another way, for what was sent so far; the connection is as it was otherwise. */
  const again = (head: Head) => {
    socket.removeAllListeners("data")
    socket.removeAllListeners("drain")
    socket.removeAllListeners("end")
    socket.pause()
    const repeated = sent ?? []
    sent = undefined
    void front.reroute(head, client).then(
      (found) => {
        if (socket.destroyed) return
        if (found._tag === "Answer") return end(found.bytes)
        if (!connect(head, found)) return
        for (const bytes of repeated) stream?.write(bytes)
        socket.resume()
      },
      () => socket.destroy(),
    )
  }

  const connect = (head: Head, { open }: Extract<Route, { _tag: "Stream" }>): boolean => {
    const opened = open(kind.http, { peer: client, proto })
    if (opened === undefined) {
      end(front.failed(head, reset.overloaded))
      return false
    }
    stream = opened
    clearTimeout(late)
    late = setTimeout(() => {
      if (responded) return
      opened.reset(reset.local_timeout)
      end(front.failed(head, reset.local_timeout))
    }, firstByteMillis)
    couple(socket, opened, {
      ...(passage === undefined ? {} : { gate: passage }),
      outgoing: feed,
      incoming: (bytes) => {
        if (!responded) {
          responded = true
          sent = undefined
          clearTimeout(late)
          socket.setTimeout(idleMillis, () => socket.destroy())
        }
        if (!watching) return
        awaiting += bytes.toString("latin1")
        const status = finalStatus(awaiting)
        if (status === undefined && awaiting.length < 64 * 1024) return
        watching = false
        awaiting = ""
        if (status === 101) {
          socket.setTimeout(0)
          front.upgraded(socket)
        }
        setImmediate(() => {
          try {
            splitter.upgraded(status === 101)
          } catch (error) {
            refuse(error)
          }
        })
      },
      onReset: (code) => {
        if (!responded && code === reset.not_here && sent !== undefined) return again(head)
        if (responded) socket.resetAndDestroy()
        else end(front.failed(head, code))
      },
    })
    return true
  }

  if (begun !== undefined) feedFirst(begun)
}
