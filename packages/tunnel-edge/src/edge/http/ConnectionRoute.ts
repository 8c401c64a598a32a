/** Where the requests of a connection go: the way that was found for the first one, under terms that may change. */
import { encode, type Forwarded, type Head } from "../../protocol/RequestHead.ts"
import type { Client } from "./ConnectionContext.ts"
import type { ConnectionMeter } from "../Metering.ts"
import type { StreamRoute, Terms } from "../routing/Route.ts"

export class ConnectionRoute {
  route: StreamRoute
  readonly passage: ConnectionMeter
  readonly terms: Terms
  private readonly client: Client
  private forwarded: Forwarded

  /** `changed`: the terms are others than before. */
  constructor(route: StreamRoute, passage: ConnectionMeter, client: Client, changed: () => void) {
    this.route = route
    this.passage = passage
    this.client = client
    this.terms = route.enter(changed)
    this.forwarded = this.forwardedBy(false)
  }

  /** The terms changed, or the agent is leaving. */
  renew(): void {
    this.forwarded = this.forwardedBy(this.forwarded.isLast)
  }

  /** The head as the agent gets it. */
  encode(head: Head): Buffer {
    if (!this.forwarded.isLast && this.route.isLeaving()) this.forwarded = this.forwardedBy(true)
    return encode(head, this.forwarded)
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
}
