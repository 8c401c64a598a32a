/**
 * Signs web requests for an Identity (`WebBotAuth`). A signature is made first; then `IssuePermission` decides whether it
 * may be handed out.
 */
import { Addresses, type AddressBook } from "@svc/domain/Addresses"
import { InvalidRequest, Unavailable, UrlInvalid } from "@svc/domain/problems/Problem"
import { coveredAtMost, type NewSignature, signatureSeconds } from "@svc/domain/proof/RequestSignature"
import { Clock, Context, Effect, Layer } from "effect"
import type { AuditNote } from "../actor/Write.ts"
import { orClosed } from "../audit/Audit.ts"
import { Writes } from "../store/Database.ts"
import { type Credential, endOf, permitted, type ProofSubject } from "./IssuePermission.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { signRequest, type Target } from "./WebBotAuth.ts"

/** Fields that the service adds or that have a member of their own. */
const added = new Set(["signature", "signature-input", "signature-agent", "content-digest"])
const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]{1,100}$/
const visible = /^[\t -~]*$/
/** A digest of RFC 9530, such as `sha-256=:…:`. */
const digest = /^sha-(?:256|512)=:[A-Za-z0-9+/]+={0,2}:$/

const invalid = (path: string, message: string) =>
  new InvalidRequest({ detail: `The request cannot be signed: ${message}.`, errors: [{ path, message }] })

/** Returns the request to sign, or fails if it is not a web request that a signature can cover. */
export const targetOf = Effect.fnUntraced(function* (book: AddressBook, request: NewSignature) {
  const url = URL.parse(request.url)
  const schemes = book.environment === "development" ? ["https:", "http:"] : ["https:"]
  if (url === null || !schemes.includes(url.protocol) || url.username + url.password !== "") {
    return yield* new UrlInvalid({ detail: "The URL must be an absolute https URL without a user and a password." })
  }
  url.hash = ""
  const names = Object.keys(request.headers ?? {})
  if (names.length > coveredAtMost) return yield* invalid("/headers", `at most ${coveredAtMost} fields are covered`)
  const fields: Array<readonly [string, string]> = []
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    const field = name.toLowerCase()
    if (!fieldName.test(field) || added.has(field) || fields.some(([other]) => other === field)) {
      return yield* invalid(`/headers/${name}`, "this is not a field that the request may name")
    }
    if (!visible.test(value)) return yield* invalid(`/headers/${name}`, "the value has characters outside of ASCII")
    fields.push([field, value])
  }
  if (request.content_digest !== undefined) {
    if (!digest.test(request.content_digest)) {
      return yield* invalid("/content_digest", "expected a digest such as sha-256=:…: (RFC 9530)")
    }
    fields.push(["content-digest", request.content_digest])
  }
  const target: Target = { method: request.method, url, fields }
  return target
})

const attempts = 3

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const book = yield* Addresses
  const keys = yield* SigningKeys

  const create = Effect.fnUntraced(function* (
    subject: ProofSubject,
    caller: Credential,
    target: Target,
    note: AuditNote,
  ) {
    for (let n = 0; n < attempts; n++) {
      const key = yield* n === 0 ? keys.lastOpened(subject) : keys.signing(subject)
      const now = yield* Clock.currentTimeMillis
      if (key === undefined) {
        // The Identity is not ready, which this check reports.
        yield* permitted(sql, subject, caller, note, now, sql`false`)
        continue
      }
      const created = Math.floor(now / 1000)
      const expires = endOf(created, signatureSeconds, caller)
      const headers = yield* signRequest(book, subject.handle, target, key, { created, expires })
      // A key that was rotated meanwhile signs nothing.
      const isCurrent = sql`exists (
        select from signing_key k where k.identity_id = ${subject.id}::uuid and k.kid = ${key.kid}::text
          and k.retired_at is null)`
      if (yield* permitted(sql, subject, caller, note, now, isCurrent)) {
        const digested = target.fields.filter(([name]) => name === "content-digest")
        return { headers: { ...Object.fromEntries(digested), ...headers }, expires_at: new Date(expires * 1000) }
      }
    }
    return yield* new Unavailable({ detail: "The key of the Identity was rotated during the request." })
  })

  return {
    /** Signs a request. The signature is recorded in the audit log, or not handed out. */
    create: (...parameters: Parameters<typeof create>) => orClosed(create(...parameters)),
  }
})

export class RequestSignatures extends Context.Service<RequestSignatures, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/RequestSignatures",
) {
  static readonly layer = Layer.effect(RequestSignatures, make).pipe(Layer.provide(SigningKeys.layer))
}
