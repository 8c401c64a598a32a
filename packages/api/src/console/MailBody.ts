/**
 * The HTML body of a message for the console's frame: a document whose sandbox and policy forbid scripts, forms and
 * requests that the reader did not ask for, and whose links open new tabs. It is served to same-origin frames only,
 * authenticated by the session (`account/ConsoleSession.ts`).
 */
import { type AddressBook, Addresses } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect, Redacted, Semaphore } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { mailDocument } from "./MailDocument.ts"
import { leaveAddress } from "./Leave.ts"
import { imagesOf } from "./MailImages.ts"

/** `images` is the source of remote images, if the reader asked for them. */
const policy = (images: string | undefined) =>
  [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    images === undefined ? "img-src data:" : `img-src data: ${images}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
    // Without `allow-scripts` nothing in the document runs; with this origin the console can measure its height.
    "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox",
  ].join("; ")

const framed = (html: string, status: number, images?: string) =>
  HttpServerResponse.text(html, {
    status,
    contentType: "text/html; charset=utf-8",
    headers: {
      "cache-control": "no-store",
      "content-security-policy": policy(images),
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
    },
  })

/** Returns the origin at which the browser reached the service: a policy cannot name a path of `'self'`. */
const originOf = ({ baseUrl }: AddressBook, host: string | undefined) =>
  /^[\w.:[\]-]+$/.test(host ?? "") ? `${new URL(baseUrl).protocol}//${host}` : new URL(baseUrl).origin

const nothing = (status: number) => framed("<!doctype html><title>Mail</title>", status)

/** The number of messages parsed for images at the same time; each is held in memory as a whole. */
const openedAtOnce = 2
const none: ReadonlyMap<string, string> = new Map()

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const credentials = yield* CredentialLookup
    const limits = yield* OrgLimits
    const messages = yield* MessageQueries
    const attachments = yield* AttachmentReader
    const sealing = yield* Sealing
    const opening = yield* Semaphore.make(openedAtOnce)

    yield* router.add(
      "GET",
      "/console/mail/:handle/:id/body",
      Effect.gen(function* () {
        const { url, headers } = yield* HttpServerRequest.HttpServerRequest
        const token = /^Bearer (.+)$/.exec(headers["authorization"] ?? "")?.[1]
        if (headers["sec-fetch-dest"] !== "iframe" || token === undefined) return nothing(403)
        const { params } = yield* HttpRouter.RouteContext
        const { caller, named } = yield* credentials.resolveNaming(
          Redacted.make(token),
          canonical(params["handle"] ?? ""),
        )
        if (named === undefined || caller.kind !== "session") return nothing(404)
        yield* limits.take(caller.org.id, "calls")
        const { html } = (yield* messages.read(named.id, params["id"] ?? "")).message
        const images =
          new URLSearchParams(url.split("?", 2)[1] ?? "").get("images") === "1"
            ? imagesOf(sealing, named.handle, params["id"] ?? "")
            : undefined
        const leave = (to: string) => leaveAddress(sealing, to)
        const pictures = /cid:/i.test(html ?? "")
          ? yield* opening.withPermits(1)(
              Effect.flatMap(messages.raw(named.id, params["id"] ?? ""), attachments.pictures),
            )
          : none
        const document = yield* mailDocument(html ?? "", { remote: images?.addressOf, pictures, leave })
        return framed(document, 200, images && `${originOf(book, headers["host"])}${images.path}`)
      }).pipe(
        Effect.catchTags({
          unauthenticated: () => Effect.succeed(nothing(401)),
          key_expired: () => Effect.succeed(nothing(401)),
          grant_revoked: () => Effect.succeed(nothing(401)),
          account_deleting: () => Effect.succeed(nothing(403)),
          not_found: () => Effect.succeed(nothing(404)),
          rate_limited: () => Effect.succeed(nothing(429)),
          unavailable: () => Effect.succeed(nothing(503)),
        }),
      ),
    )
  }),
)
