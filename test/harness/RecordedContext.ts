/** A public connection without sockets: records its actions and lets the test trigger its events. */
import type { Client, ConnectionContext } from "@svc/tunnel-edge/edge/http/ConnectionContext"
import { PublicConnection } from "@svc/tunnel-edge/edge/http/PublicConnection"
import type { AgentCaller, StreamRoute } from "@svc/tunnel-edge/edge/routing/Route"
import type { Head } from "@svc/tunnel-edge/protocol/RequestHead"

export interface Setting {
  readonly client?: Partial<Client>
  readonly host?: string
  readonly refuses?: (head: Head) => Buffer | undefined
  readonly allows?: (authorization: string | undefined) => boolean
  readonly callerOf?: (head: Head) => Promise<AgentCaller | Buffer | undefined>
  readonly isLeaving?: () => boolean
  readonly isLink?: (head: Head) => boolean
  /** Called when something is written to the agent's stream. */
  readonly onForward?: () => void
  /** The link accepts no more streams. */
  readonly full?: boolean
  readonly isTurnSpent?: () => boolean
}

/** Creates a connection whose context records all calls. */
export const make = (setting: Setting = {}) => {
  /** All actions except `forward`, in order. */
  const did: Array<string> = []
  /** The input of each stream. */
  const streams: Array<string> = []
  let toClient = ""
  let deadline: number | undefined
  let idle = 0
  const counted = { in: 0, requests: 0, responses: [] as Array<boolean>, isClosed: false, hasLeft: false }
  let cut = () => {}
  let changed = () => {}

  const line: ConnectionContext = {
    route: ({ target }) => did.push(`route ${target}`),
    reroute: ({ target }) => did.push(`reroute ${target}`),
    open: () => {
      if (setting.full === true) return false
      did.push("open")
      streams.push("")
      return true
    },
    forward: (bytes) => {
      streams[streams.length - 1] += bytes.toString("latin1")
      setting.onForward?.()
    },
    finish: () => did.push("finish"),
    reset: (code) => did.push(`reset ${code}`),
    pause: () => did.push("pause"),
    resume: () => did.push("resume"),
    discard: () => did.push("discard"),
    end: (bytes) => {
      did.push("end")
      toClient += bytes?.toString("latin1") ?? ""
    },
    destroy: () => did.push("destroy"),
    abort: () => did.push("abort"),
    deadline: (millis) => (deadline = millis),
    idle: (millis) => (idle = millis),
    nextTurn: () => did.push("nextTurn"),
    isTurnSpent: () => setting.isTurnSpent?.() ?? false,
    upgraded: () => did.push("upgraded"),
    handOver: ({ target }, rest) => did.push(`handOver ${target} ${rest.toString("latin1")}`),
  }
  const connection = new PublicConnection(
    line,
    { address: "192.0.2.1", proto: "http", serverName: undefined, ...setting.client },
    {
      isLink: setting.isLink ?? (() => false),
      failed: ({ target }, code) => Buffer.from(`failed ${target} ${code}`),
    },
  )
  const route: StreamRoute = {
    _tag: "Stream",
    caller: undefined,
    open: () => undefined,
    isLeaving: setting.isLeaving ?? (() => false),
    enter: (changing) => {
      changed = changing
      return {
        host: () => setting.host,
        ownAuthorization: () => false,
        refuses: setting.refuses ?? (() => undefined),
        callerOf: setting.callerOf ?? (async () => undefined),
        allows: setting.allows ?? (() => true),
        leave: () => void (counted.hasLeft = true),
      }
    },
    openMeter: (cutting) => {
      cut = cutting
      return {
        count: (_, bytes) => {
          counted.in += bytes
          return true
        },
        countRequest: () => void counted.requests++,
        countResponse: (isError) => void counted.responses.push(isError),
        onRoom: () => {},
        close: () => void (counted.isClosed = true),
      }
    },
  }
  return {
    connection,
    did,
    streams,
    counted,
    route,
    toClient: () => toClient,
    deadline: () => deadline,
    idle: () => idle,
    cut: () => cut(),
    /** Signals that the Tunnel's settings have changed. */
    changed: () => changed(),
    client: (text: string) => connection.received(Buffer.from(text, "latin1")),
    /** Lets the agent send this text to the client. */
    agent: (text: string) => {
      connection.answers(Buffer.from(text, "latin1"))
      toClient += text
    },
  }
}

export const get = (target: string, more = "") => `GET ${target} HTTP/1.1\r\nHost: a.example\r\n${more}\r\n`
/** Returns the request as the agent receives it. */
export const forwardedGet = (target: string, more = "") =>
  get(target, `${more}X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a.example\r\n`)
export const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/** Creates a connection whose first request was forwarded to the agent. */
export const forwarding = (setting: Setting = {}, first = get("/1")) => {
  const one = make(setting)
  one.client(first)
  one.connection.routed(one.route)
  one.did.length = 0
  return one
}
/** Creates a connection whose first request was answered. */
export const answering = (setting: Setting = {}) => {
  const one = forwarding(setting)
  one.agent(ok)
  return one
}
