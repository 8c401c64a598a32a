/** Answers that a test gives to the SDK in place of a service. */

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: string | undefined
  readonly signal: AbortSignal | null | undefined
  /** Milliseconds since the test began. */
  readonly at: number
}
export type Answer = (seen: Seen) => Response | Promise<Response>

/** Returns a `fetch` that gives the answers one by one, the last one again and again, and the requests. */
export const answering = (...answers: ReadonlyArray<Answer>) => {
  const seen: Array<Seen> = []
  const began = Date.now()
  const fake: typeof fetch = async (input, init = {}) => {
    const body =
      init.body instanceof ArrayBuffer ? Buffer.from(init.body).toString() : (init.body as string | undefined)
    const one = {
      method: init.method!,
      url: String(input),
      headers: new Headers(init.headers),
      body,
      signal: init.signal,
      at: Date.now() - began,
    }
    seen.push(one)
    init.signal?.throwIfAborted()
    return answers[Math.min(seen.length, answers.length) - 1]!(one)
  }
  return { seen, fetch: fake }
}
export const json =
  (body: object, status = 200): Answer =>
  () =>
    Response.json(body, { status })
export const problem = (status: number, code: string, agent_hint = "fix_call") =>
  json({ code, title: code, detail: code, agent_hint }, status)
