/**
 * The state machine of one public HTTP/1.1 connection, which maps to one stream to the agent. Has no sockets: events
 * call its methods, and it acts through its {@link ConnectionContext}. Request heads are validated and rewritten
 * ({@link RequestSplitter}); response bytes are only inspected for the start of a response and the result of an
 * upgrade. Does not use Effect, because it runs per chunk.
 */
import { reset } from "../../protocol/Manifest.ts"
import { type Head, Refusal } from "../../protocol/RequestHead.ts"
import { RequestSplitter } from "../../protocol/RequestSplitter.ts"
import { isHead, refusal, withoutBody } from "./EdgeResponses.ts"
import { type Client, type ConnectionContext, type Rules, type State, takesRequests } from "./ConnectionContext.ts"
import { ConnectionRoute } from "./ConnectionRoute.ts"
import { ReplayBuffer } from "./ReplayBuffer.ts"
import type { Route, StreamRoute } from "../routing/Route.ts"
import { Timing } from "../Timing.ts"
import { UpgradeResponse } from "./UpgradeResponse.ts"

export class PublicConnection {
  state: State = "reading"
  private readonly io: ConnectionContext
  private readonly client: Client
  private readonly rules: Rules
  private readonly splitter: RequestSplitter
  private first: Head | undefined
  private onward: ConnectionRoute | undefined
  /** Bytes received before the meter was opened. */
  private uncounted = 0
  /** The agent has responded or ended the stream, so the edge can no longer send a response of its own. */
  private isAnswered = false
  private clientEnded = false
  /** The settings no longer admit the client. Requests in flight may finish. */
  private isWithdrawn = false
  /** Pipelined requests wait for the next turn of the event loop. */
  private isYielding = false
  private readonly repeatable = new ReplayBuffer()
  private upgrade: UpgradeResponse | undefined
  private accepted = false
  /** The refusal to send after earlier responses are complete, and whether it is the response to HEAD. */
  private refused: { readonly bytes: Buffer | Promise<Buffer>; readonly toHead: boolean } | undefined

  constructor(line: ConnectionContext, client: Client, rules: Rules) {
    this.io = line
    this.client = client
    this.rules = rules
    this.splitter = new RequestSplitter(
      (head) => this.judge(head),
      (bytes) => this.out(bytes),
    )
    line.deadline(Timing.headMillis)
  }

  // --- Events of the client

  received(chunk: Buffer): void {
    if (this.state === "refusing" || this.state === "closing" || this.state === "closed") return
    if (this.onward === undefined) this.uncounted += chunk.length
    this.orRefuse(() => this.splitter.feed(chunk))
  }

  ended(): void {
    this.clientEnded = true
    if (takesRequests(this.state) || this.state === "upgraded") return this.isYielding ? undefined : this.io.finish()
    if (this.state !== "reading") return
    this.state = "closing"
    this.io.deadline(Timing.lingerMillis)
    this.io.end()
  }

  closed(): void {
    this.state = "closed"
    this.io.deadline(undefined)
    this.onward?.close()
  }

  routed(route: Route): void {
    if (this.state !== "routing" && this.state !== "repeating") return
    if (route._tag === "Answer") return this.respond(route.bytes)
    if (this.onward === undefined) this.begin(route)
    else this.repeat(route, this.onward)
  }

  private begin(route: StreamRoute): void {
    const passage = route.openMeter(() => this.cut())
    passage.count("in", this.uncounted)
    this.onward = new ConnectionRoute(route, passage, this.client, () => this.termsChanged())
    if (!this.open(route, this.onward)) return
    this.out(this.onward.encode(this.first!, route.caller))
    this.release()
  }

  private termsChanged(): void {
    if (this.onward === undefined || this.state === "closed") return
    this.onward.renew()
    this.isWithdrawn = !this.onward.admitsLast()
    switch (this.state) {
      case "upgraded":
        if (!this.isWithdrawn) return
        this.io.reset(reset.policy)
        return this.abort()
      case "answering":
      case "answered":
        // The next request is refused; the current response gets a deadline.
        return this.io.deadline(this.isWithdrawn ? Timing.tailMillis : undefined)
    }
  }

  private repeat(route: StreamRoute, onward: ConnectionRoute): void {
    onward.route = route
    // A request is replayed once. If the second route fails too, the failure is the response.
    const repeated = this.repeatable.take()
    if (!this.open(route, onward)) return
    for (const bytes of repeated) this.io.forward(bytes)
    if (this.refused === undefined) this.release()
    else this.refuseAfter(this.refused.bytes, this.refused.toHead)
  }

  private open(route: StreamRoute, { passage }: ConnectionRoute): boolean {
    if (!this.io.open(route, passage)) {
      this.respond(this.failed(reset.overloaded))
      return false
    }
    this.state = "forwarding"
    this.io.deadline(Timing.firstByteMillis)
    this.io.resume()
    return true
  }

  /** Forwards the bytes that were held behind the first request. */
  private release(): void {
    if (!takesRequests(this.state)) return
    this.orRefuse(() => this.splitter.release())
    if (this.clientEnded && !this.isYielding && takesRequests(this.state)) this.io.finish()
  }

  /** Pauses pipelined requests if they have used up this turn of the event loop, so that other connections proceed. */
  private yieldTurn(): void {
    if (this.isYielding || !takesRequests(this.state) || !this.io.isTurnSpent()) return
    this.isYielding = true
    this.splitter.hold()
    this.io.pause()
    this.io.nextTurn()
  }

  // --- Events of the agent

  answers(bytes: Buffer): void {
    this.onward?.countResponse(bytes)
    if (!this.isAnswered) this.beginAnswer()
    if (this.upgrade !== undefined) this.watch(this.upgrade, bytes)
  }

  streamEnded(): void {
    if (this.state === "closing" || this.state === "closed") return
    if (this.refused !== undefined) return this.respond(this.refused.bytes, this.refused.toHead)
    this.state = "answered"
    this.isAnswered = true
    this.io.end()
  }

  streamReset(code: number): void {
    switch (this.state) {
      case "forwarding":
      case "refusing":
        if (this.isAnswered) return this.abort()
        if (code === reset.not_here && this.repeatable.isWhole) return this.seekAnother()
        return this.respond(this.failed(code))
      case "answering":
      case "upgraded":
      case "answered":
        return this.abort()
    }
  }

  private beginAnswer(): void {
    this.isAnswered = true
    this.repeatable.take()
    this.io.idle(Timing.idleMillis)
    if (this.state !== "forwarding") return
    this.state = "answering"
    this.io.deadline(this.isWithdrawn ? Timing.tailMillis : undefined)
  }

  private watch(upgrade: UpgradeResponse, bytes: Buffer): void {
    const accepted = upgrade.feed(bytes)
    if (accepted === undefined) return
    this.upgrade = undefined
    this.accepted = accepted
    if (accepted && this.state === "answering") {
      this.state = "upgraded"
      this.io.idle(0)
      this.io.upgraded()
      // The settings changed while the upgrade was in flight.
      if (this.isWithdrawn) return this.termsChanged()
    }
    // Bytes behind the upgrade request may be refused, and the refusal must not overtake the response.
    this.io.nextTurn()
  }

  private seekAnother(): void {
    this.state = "repeating"
    this.splitter.hold()
    this.io.pause()
    this.io.reroute(this.first!)
  }

  deadlinePassed(): void {
    if (this.state !== "forwarding" && this.state !== "repeating")
      return this.isWithdrawn ? this.abort() : this.destroy()
    this.io.reset(reset.local_timeout)
    this.respond(this.failed(reset.local_timeout))
  }

  idled(): void {
    this.destroy()
  }

  turned(): void {
    if (this.isYielding) {
      this.isYielding = false
      this.release()
      if (!this.isYielding && takesRequests(this.state)) this.io.resume()
      return
    }
    switch (this.state) {
      case "linking":
        this.state = "closed"
        return this.io.handOver(this.first!, this.splitter.rest())
      case "answering":
      case "upgraded":
      case "answered":
        this.orRefuse(() => this.splitter.upgraded(this.accepted))
    }
  }

  // --- Requests from the splitter

  private judge(head: Head): void {
    if (this.onward !== undefined) return this.judgeFurther(head, this.onward)
    this.first = head
    const { serverName } = this.client
    if (serverName !== undefined && serverName !== head.host)
      throw new Refusal(421, "Host is not the name that TLS was opened for")
    this.io.deadline(undefined)
    this.io.pause()
    this.splitter.hold()
    if (this.rules.isLink(head)) {
      this.state = "linking"
      return this.io.nextTurn()
    }
    if (head.upgrade && head.headers.get("upgrade")?.toLowerCase() !== "websocket")
      throw new Refusal(400, "only an edge takes links")
    this.state = "routing"
    if (head.upgrade) this.upgrade = new UpgradeResponse()
    this.io.route(head)
  }

  private judgeFurther(head: Head, onward: ConnectionRoute): void {
    const refused = onward.terms.refuses(head)
    if (refused !== undefined) return this.refuseAfter(refused, isHead(head))
    if (head.isSigned) return this.identify(head, onward)
    this.out(onward.encode(head))
    this.yieldTurn()
  }

  /** Holds a further request until its signature is verified. */
  private identify(head: Head, onward: ConnectionRoute): void {
    this.isYielding = true
    this.splitter.hold()
    this.io.pause()
    void onward.terms.callerOf(head).then((found) => {
      this.isYielding = false
      if (!takesRequests(this.state)) return
      if (Buffer.isBuffer(found)) return this.refuseAfter(found, isHead(head))
      this.out(onward.encode(head, found))
      this.release()
      if (!this.isYielding && takesRequests(this.state)) this.io.resume()
    })
  }

  private out(bytes: Buffer): void {
    if (!this.isAnswered) this.repeatable.add(bytes)
    this.io.forward(bytes)
  }

  private orRefuse(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.refuse(error)
    }
  }

  private refuse(error: unknown): void {
    const bytes = error instanceof Refusal ? refusal(error.status, error.message) : undefined
    if (bytes !== undefined && this.onward === undefined) return this.respond(bytes)
    if (bytes !== undefined && this.splitter.isBetween) return this.refuseAfter(bytes)
    this.io.reset(reset.cancel)
    if (bytes === undefined || this.isAnswered) this.abort()
    else this.respond(bytes)
  }

  /** Sends the refusal after the responses to earlier requests, then closes. */
  private refuseAfter(bytes: Buffer | Promise<Buffer>, toHead = false): void {
    this.refused = { bytes, toHead }
    this.state = "refusing"
    this.splitter.hold()
    this.io.discard()
    this.io.deadline(Timing.tailMillis)
    this.io.finish()
  }

  private cut(): void {
    if (this.state === "closing" || this.state === "closed") return
    this.io.reset(reset.quota)
    if (this.isAnswered) this.abort()
    else this.respond(this.failed(reset.quota))
  }

  private failed(code: number): Buffer {
    this.onward?.passage.countResponse(true)
    return this.rules.failed(this.first!, code)
  }

  private respond(response: Buffer | Promise<Buffer>, toHead = isHead(this.first)): void {
    if (!Buffer.isBuffer(response)) {
      return void response.then((bytes) => (this.state === "closed" ? undefined : this.respond(bytes, toHead)))
    }
    this.leave("closing")
    // Unread bytes of the client would otherwise reset the connection before the response arrives.
    this.io.discard()
    this.io.deadline(Timing.lingerMillis)
    this.io.end(toHead ? withoutBody(response) : response)
  }

  private abort(): void {
    this.leave("closed")
    this.io.abort()
  }

  private destroy(): void {
    this.leave("closed")
    this.io.destroy()
  }

  private leave(state: "closing" | "closed"): void {
    this.state = state
    this.splitter.hold()
  }
}
