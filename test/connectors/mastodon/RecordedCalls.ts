/** The services of a call to a Mastodon server whose requests are answered by the test. */
import type { PlatformFailure } from "@svc/cluster/connectors/platforms/Failure"
import type { PlatformContext } from "@svc/cluster/connectors/platforms/Platform"
import type { PlatformResponse } from "@svc/cluster/connectors/platforms/PlatformHttp"
import { Effect } from "effect"

export const service = "https://social.example"

interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}
export type Respond = (
  sent: Sent,
) => { status?: number; body?: unknown; headers?: Record<string, string> } | PlatformFailure

/** The services of a call, with the requests that it sent. */
export const visiting = (respond: Respond) => {
  const sent: Array<Sent> = []
  const forgotten: Array<string> = []
  const request = (url: string | URL, { method = "GET", headers = {}, body }: any = {}) =>
    Effect.suspend((): Effect.Effect<PlatformResponse, any> => {
      const one = { url: String(url), method, headers, body: body === undefined ? "" : Buffer.from(body).toString() }
      sent.push(one)
      const found = respond(one)
      if ("_tag" in found) return Effect.fail(found)
      const text = typeof found.body === "string" ? found.body : JSON.stringify(found.body ?? {})
      return Effect.succeed({
        status: found.status ?? 200,
        headers: new Headers(found.headers),
        body: Buffer.from(text),
      })
    })
  const visit = {
    http: { request },
    registrations: { forget: (service: string) => Effect.sync(() => void forgotten.push(service)) },
  } as unknown as PlatformContext
  return { visit, sent, forgotten, http: visit.http }
}
