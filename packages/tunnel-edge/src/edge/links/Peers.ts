/**
 * Links between edges, which forward a request over at most one hop. An edge authenticates with a stamp that only
 * holders of the master key can create. Links are kept open for reuse.
 */
import { readFileSync, readlinkSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { hostname } from "node:os"
import { connect as connectSecure } from "node:tls"
import type { Sealing } from "@svc/cluster/sealing/Sealing"
import { type Link, makeLink } from "../../protocol/Link.ts"
import { flag, goaway, kind, reset, type ResetCode, upgradeToken } from "../../protocol/Manifest.ts"
import type { MuxStream } from "../../protocol/Mux.ts"
import type { Registry } from "./Registry.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import { Timing } from "../Timing.ts"

/** Identifies the network namespace of this machine: two containers on one host have separate ports. */
const machine = [
  hostname(),
  ...["/proc/sys/kernel/random/boot_id", "/proc/self/ns/net"].map((file) => {
    try {
      return file.endsWith("net") ? readlinkSync(file) : readFileSync(file, "utf8").trim()
    } catch {
      return ""
    }
  }),
].join(" ")

export const peerPath = "/v1/peer"

/** Returns whether another edge requests a link. */
export const isPeer = (head: Head): boolean =>
  head.upgrade && head.target === peerPath && head.headers.get("upgrade")?.toLowerCase() === upgradeToken

export const switching = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\n\r\n`

/** Splices the stream of the requesting edge with the stream of the agent's link. */
const join = (from: MuxStream, to: MuxStream) => {
  const pass = (a: MuxStream, b: MuxStream) => {
    let owed = 0
    a.onData = (bytes) => {
      if (b.write(bytes)) a.delivered(bytes.length)
      else owed += bytes.length
    }
    b.onDrain = () => {
      const bytes = owed
      owed = 0
      a.delivered(bytes)
    }
    a.onEnd = () => b.end()
    a.onReset = (code: ResetCode) => b.reset(code)
  }
  pass(from, to)
  pass(to, from)
}

export const make = (options: {
  readonly edgeId: string
  /** The name that agents and edges dial; the TLS certificate contains it. */
  readonly connectHost: string
  readonly ca: () => string | undefined
  readonly sealing: Sealing["Service"]
  readonly registry: Registry
  /** The time of day in milliseconds, which two edges compare. */
  readonly now: () => number
  /** Returns whether this edge listens on the TCP port of a name. */
  readonly listens: (name: string, port: number) => boolean
}) => {
  const dialled = new Map<string, Promise<Link | undefined>>()
  const accepted = new Set<Link>()
  const isStamped = (stamped: string | undefined) => {
    const at = Number(options.sealing.unstamp("edge-peer", stamped ?? "")?.split("/")[1])
    return Math.abs(options.now() - at) < Timing.peerStampMillis
  }

  const dial = (address: string) =>
    new Promise<Link | undefined>((resolve) => {
      const target = { host: address.replace(/:\d+$/, ""), port: Number(/:(\d+)$/.exec(address)?.[1]) }
      const ca = options.ca()
      const socket: Socket =
        ca !== undefined
          ? connectSecure({
              ...target,
              servername: options.connectHost,
              ca,
              checkServerIdentity: () => undefined,
            })
          : connect(target)
      const giveUp = () => {
        socket.destroy()
        resolve(undefined)
      }
      socket.setTimeout(Timing.peerDialMillis, giveUp)
      socket.once("error", giveUp)
      // An edge that refuses the stamp closes the connection without a response.
      socket.once("close", giveUp)
      socket.once(ca !== undefined ? "secureConnect" : "connect", () => {
        const stamp = options.sealing.stamp("edge-peer", `${options.edgeId}/${options.now()}`)
        socket.write(
          `GET ${peerPath} HTTP/1.1\r\nHost: ${options.connectHost}\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\nsvc-tunnel-peer: ${stamp}\r\n\r\n`,
        )
      })
      let text = ""
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
        const end = text.indexOf("\r\n\r\n")
        if (end < 0) return
        socket.removeAllListeners()
        if (!text.startsWith("HTTP/1.1 101")) return giveUp()
        resolve(
          makeLink(socket, Buffer.from(text.slice(end + 4), "latin1"), true, {
            open: (stream) => stream.reset(reset.policy),
            hello: () => {},
            goaway: () => dialled.delete(address),
            close: () => dialled.delete(address),
          }),
        )
      })
    })

  const to = (address: string): Promise<Link | undefined> => {
    const present = dialled.get(address)
    if (present !== undefined) return present
    const link = dial(address)
    dialled.set(address, link)
    void link.then((made) => made === undefined && dialled.delete(address))
    return link
  }

  return {
    /** Returns the link to the edge at this address, or undefined if it is unreachable. */
    to,

    /** Returns whether the edge at this address listens on the TCP port of a name on this machine. */
    listens: async (address: string, name: string, port: number): Promise<boolean> => {
      const meta = Buffer.from(JSON.stringify({ name, tcp_port: port }))
      const stream = (await to(address))?.mux.open(kind.probe, 0, meta)
      if (stream === undefined) return false
      return await new Promise((resolve) => {
        let text = ""
        const done = (is: boolean) => {
          clearTimeout(late)
          resolve(is)
        }
        const late = setTimeout(() => {
          stream.reset(reset.cancel)
          done(false)
        }, Timing.peerDialMillis)
        stream.onData = (bytes) => {
          text += bytes.toString("utf8")
          stream.delivered(bytes.length)
        }
        stream.onReset = () => done(false)
        stream.onEnd = () => {
          stream.end()
          done(text === JSON.stringify({ machine, listens: true }))
        }
      })
    },

    accept: (head: Head, socket: Socket, rest: Buffer): void => {
      if (!isStamped(head.headers.get("svc-tunnel-peer"))) return void socket.destroy()
      socket.write(switching)
      const peer = makeLink(socket, rest, false, {
        open: (stream, streamKind, _, meta) => {
          const { name, tcp_port, ...passed } = meta
          if (streamKind === kind.probe && typeof name === "string" && typeof tcp_port === "number") {
            stream.write(Buffer.from(JSON.stringify({ machine, listens: options.listens(name, tcp_port) })))
            return stream.end()
          }
          const local = typeof name === "string" ? options.registry.pick(name) : undefined
          const onward = local?.link.mux.open(streamKind, flag.hopped, Buffer.from(JSON.stringify(passed)))
          if (onward === undefined) return stream.reset(reset.not_here)
          join(stream, onward)
        },
        hello: () => {},
        goaway: () => {},
        close: () => accepted.delete(peer),
      })
      accepted.add(peer)
      socket.resume()
    },

    /** Tells other edges to reconnect elsewhere. */
    leave: (): void => accepted.forEach((peer) => peer.goaway(goaway.drain)),
    isBusy: (): boolean => [...accepted].some(({ mux }) => mux.streams.size > 0),
    close: (): void => accepted.forEach((peer) => peer.close("drained")),
  }
}

export type Peers = ReturnType<typeof make>
