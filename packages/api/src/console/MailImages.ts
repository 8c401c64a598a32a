/**
 * Remote images of messages, which the service fetches for a reader who asked for them: the sender's server learns neither the
 * reader's address nor the browser. Addresses are stamped, so that only images of messages are fetched, through the guarded
 * client: public hosts, bounded size and time, no cookies.
 */
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import type { BufferedResponse } from "@svc/cluster/net/BufferedResponse"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { unrestricted } from "@svc/cluster/net/SendPermission"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { canonical } from "@svc/domain/handles/Handle"
import { Effect, Redacted, Semaphore } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"

const scope = "console/image"
const bytesAtMost = 5 * 1024 * 1024
const timeout = "10 seconds"
const redirectsAtMost = 3
/** Images that a process fetches at the same time; each is in memory as a whole. */
const fetchedAtOnce = 12

/** Returns the path of the images of a message, for its policy, and the function that addresses one of them. */
export const imagesOf = (sealing: Sealing["Service"], handle: string, id: string) => {
  const path = `/console/mail/${encodeURIComponent(handle)}/${encodeURIComponent(id)}/images/`
  return { path, addressOf: (url: string) => path + sealing.stamp(scope, url) }
}

const begins = (body: Uint8Array, text: string, at = 0) =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1", at, at + text.length) === text

/** Returns the media type by the content; undefined for anything but an image that cannot contain scripts. */
const typeOf = (body: Uint8Array): string | undefined => {
  if (begins(body, "\u0089PNG\r\n\u001a\n")) return "image/png"
  if (begins(body, "\u00ff\u00d8\u00ff")) return "image/jpeg"
  if (begins(body, "GIF8")) return "image/gif"
  if (begins(body, "RIFF") && begins(body, "WEBP", 8)) return "image/webp"
  return begins(body, "ftypavif", 4) ? "image/avif" : undefined
}

const nothing = HttpServerResponse.empty({ status: 404, headers: { "cache-control": "no-store" } })

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const credentials = yield* CredentialLookup
    const client = yield* GuardedClient
    const sealing = yield* Sealing
    const fetching = yield* Semaphore.make(fetchedAtOnce)

    const get = (url: URL) =>
      client.ask(
        url,
        {
          method: "GET",
          headers: { accept: "image/*", "user-agent": "Mozilla/5.0 (compatible; mail image proxy)" },
          atMost: bytesAtMost,
        },
        unrestricted,
      )
    /** Follows redirects; the guarded client checks the host of each. Where http is not allowed, https is tried. */
    const fetched = (url: URL, left = redirectsAtMost): ReturnType<typeof get> =>
      get(url).pipe(
        Effect.catch((failure) => {
          if (failure.error !== "refused_address" || url.protocol !== "http:") return Effect.fail(failure)
          const secure = new URL(url)
          secure.protocol = "https:"
          return get(secure)
        }),
        Effect.flatMap((response: BufferedResponse) => {
          const to = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null
          const next = to === null ? null : URL.parse(to, url)
          return next === null || left === 0 ? Effect.succeed(response) : fetched(next, left - 1)
        }),
      )

    yield* router.add(
      "GET",
      "/console/mail/:handle/:id/images/:image",
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const token = /^Bearer (.+)$/.exec(headers["authorization"] ?? "")?.[1]
        const { params } = yield* HttpRouter.RouteContext
        const address = sealing.unstamp(scope, params["image"] ?? "")
        const url = address === undefined ? null : URL.parse(address)
        if (headers["sec-fetch-dest"] !== "image" || token === undefined || url === null) return nothing
        const { caller, named } = yield* credentials.resolveNaming(
          Redacted.make(token),
          canonical(params["handle"] ?? ""),
        )
        if (named === undefined || caller.kind !== "session") return nothing
        const { status, body } = yield* fetching.withPermits(1)(Effect.timeout(fetched(url), timeout))
        const contentType = status === 200 ? typeOf(body) : undefined
        if (contentType === undefined) return nothing
        return HttpServerResponse.uint8Array(body, {
          contentType,
          headers: {
            "cache-control": "private, max-age=86400",
            "content-security-policy": "default-src 'none'; sandbox",
            "cross-origin-resource-policy": "same-origin",
          },
        })
      }).pipe(Effect.catch(() => Effect.succeed(nothing))),
    )
  }),
)
