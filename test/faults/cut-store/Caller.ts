/**
 * A caller with an Identity of its own. Nobody else changes its resources, so it knows from the answers to its requests what
 * must exist.
 */
import type { Process } from "../../harness/Deployment.ts"
import { randomBelow } from "../Random.ts"
import type { Effects, Findings } from "./Findings.ts"
import type { Answer, RepeatingClient, Request } from "./RepeatingClient.ts"

export interface Change extends Omit<Request, "tool"> {
  /**
   * The tool for the same change, and its arguments that are not in the body of the request. A tool of the effect `write` takes a
   * call without an `idempotency_key` for a repeat of an equal call.
   */
  readonly tool?: readonly [name: string, input: object, effect?: "write"]
  /** The name of the change in the audit log. */
  readonly action: string
  /** The Events that it raises. */
  readonly raises?: ReadonlyArray<string>
  /** The path whose ETag a change may have as its `If-Match`. */
  readonly asSeenAt?: string
  /** The only other answer that is right, and means that nothing was changed. */
  readonly refusal?: number
  /**
   * Another answer that a repeat may have after its first attempt made the change: 409 instead of a secret, which is shown
   * once, and 404 for an Identity whose deletion has ended.
   */
  readonly repeatedAs?: number
}

/** Resources of one kind: operations on them, and a comparison with what must exist. */
export interface Resources {
  readonly operations: ReadonlyArray<() => Promise<unknown>>
  readonly compare: () => Promise<void>
}

export interface CallerOptions {
  readonly client: RepeatingClient
  readonly findings: Findings
  readonly effects: Effects
  readonly handle: string
  readonly identityKey: string
  readonly seed: number
  /** Returns the process for the next connection. */
  readonly process: () => Process
  /** Whether messages of the Identity wait for an approval. */
  readonly isApproved: boolean
}

export class Caller {
  readonly client: RepeatingClient
  readonly findings: Findings
  readonly effects: Effects
  readonly handle: string
  readonly identityKey: string
  readonly process: () => Process
  readonly isApproved: boolean
  readonly draw: (below: number) => number
  readonly own: string
  #texts = 0
  #changes = 0

  constructor({ client, findings, effects, handle, identityKey, seed, process, isApproved }: CallerOptions) {
    this.client = client
    this.findings = findings
    this.effects = effects
    this.handle = handle
    this.identityKey = identityKey
    this.process = process
    this.isApproved = isApproved
    this.draw = randomBelow(seed)
    this.own = `/api/identities/${handle}`
  }

  pick<A>(from: Iterable<A>): A | undefined {
    const all = [...from]
    return all[this.draw(Math.max(1, all.length))]
  }

  /** Returns a text that occurs nowhere else. */
  text(what: string): string {
    return `${what} ${this.#texts++} of ${this.handle}`
  }

  /** Reads a resource that must exist. */
  async read(path: string): Promise<Answer> {
    const answer = await this.client.ask({ method: "GET", path })
    if (answer.status !== 200) this.findings.add(`GET ${path} answered ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }

  /** Makes a change with an `Idempotency-Key` of its own. Returns the answer, or undefined if nothing was changed. */
  async change({
    action,
    raises = [],
    asSeenAt,
    refusal,
    repeatedAs,
    tool,
    ...request
  }: Change): Promise<Answer | undefined> {
    const key = `${this.handle}-${this.#changes++}`
    const headers: Record<string, string> = { "idempotency-key": key }
    let asked: Request = { ...request, headers }
    if (tool !== undefined && this.draw(2) === 0) {
      const [name, input, effect] = tool
      const keyed = effect === "write" && this.draw(2) === 0 ? {} : { idempotency_key: key }
      asked = { ...request, tool: name, body: { ...(request.body as object | undefined), ...input, ...keyed } }
    } else if (asSeenAt !== undefined && this.draw(2) === 0) {
      headers["if-match"] = (await this.read(asSeenAt)).headers.get("etag") ?? "none"
    }
    const answer = await this.client.ask(asked)
    const { status, isRepeated } = answer
    const isMade = refusal === undefined && (status < 300 || (isRepeated && status === repeatedAs))
    if (isMade) {
      this.effects.actions.add(action)
      for (const event of raises) this.effects.events.add(event)
      return answer
    }
    if (status !== refusal) {
      const condition = headers["if-match"] === undefined ? "" : ` with If-Match ${headers["if-match"]}`
      this.findings.add(
        `${request.method} ${request.path}${condition}${isRepeated ? ", repeated," : ""} answered ${status} ${JSON.stringify(answer.body)}`,
      )
    }
    return undefined
  }
}

/** Returns the id of what a request created, also from the answer to a repeat, which shows no secret. */
export const createdId = ({ body, headers }: Answer): string =>
  body.id ?? headers.get("location")?.split("/").at(-1) ?? "an answer without an id"
