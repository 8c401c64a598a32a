/** The position of the first digit of the status code in a response. */
const statusAt = "HTTP/1.1 ".length

/** The route of a connection: the stream that was found for its first request, under settings that may change. */
import { encode, type Forwarded, type Head } from "../../protocol/RequestHead.ts"
import type { Client } from "./ConnectionContext.ts"
import type { ConnectionMeter } from "../Metering.ts"
import type { AgentCaller, StreamRoute, Terms } from "../routing/Route.ts"

/** Returns the lines that name a verified caller to the local program. */
const fieldsOf = ({ origin, handle }: AgentCaller) =>
  `Svc-Agent: ${origin}\r\n${handle === undefined ? "" : `Svc-Agent-Handle: ${handle}\r\n`}`

export class ConnectionRoute {
  route: StreamRoute
  readonly passage: ConnectionMeter
  readonly terms: Terms
  private readonly client: Client
  private forwarded: Forwarded
  /** `Authorization` of the last request, and the agent that signed it. */
  private authorization: string | undefined
  private caller: AgentCaller | undefined

  /** `changed` is called when the Tunnel's settings change. */
  constructor(route: StreamRoute, passage: ConnectionMeter, client: Client, changed: () => void) {
    this.route = route
    this.passage = passage
    this.client = client
    this.terms = route.enter(changed)
    this.forwarded = this.forwardedBy(false)
  }

  /** Rebuilds the forwarding fields after the settings changed. */
  renew(): void {
    this.forwarded = this.forwardedBy(this.forwarded.isLast)
  }

  /** Counts a request, and returns the bytes of its head as the agent receives it. */
  encode(head: Head, caller?: AgentCaller): Buffer {
    this.authorization = head.authorization
    this.caller = caller
    this.passage.countRequest()
    if (!this.forwarded.isLast && this.route.isLeaving()) this.forwarded = this.forwardedBy(true)
    return encode(head, this.forwarded, caller === undefined ? "" : fieldsOf(caller))
  }

  /** Returns whether the settings still admit the client of the last request. */
  admitsLast(): boolean {
    return this.terms.allows(this.authorization, this.caller)
  }

  close(): void {
    this.passage.close()
    this.terms.leave()
  }

  private forwardedBy(isLast: boolean): Forwarded {
    const { client, terms } = this
    return {
      client: client.address,
      proto: client.proto,
      host: terms.host(),
      ownAuthorization: terms.ownAuthorization(),
      isLast,
    }
  }

  /** Counts the response that a chunk starts. A response has its own first chunk, because clients rarely pipeline. */
  countResponse(bytes: Buffer): void {
    if (bytes.length > statusAt && bytes.toString("latin1", 0, 7) === "HTTP/1.")
      this.passage.countResponse(bytes[statusAt] === 0x35)
  }
}
