import { Addresses, did, didUrl, jwksUrl } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Caller, Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { notReady } from "@svc/domain/identity/NotReady"
import { fallsShort } from "@svc/domain/account/KeyRights"
import { makeUuidV7 } from "@svc/domain/Ids"
import { isOurs, ProofSettings, tokenSeconds } from "@svc/domain/proof/IdentityToken"
import { IdentityTokens } from "@svc/cluster/proof/IdentityTokens"
import {
  AlgorithmUnsupported,
  AudienceNotAllowed,
  ScopeExceeds,
  InvalidRequest,
  NotFound,
} from "@svc/domain/problems/Problem"
import * as Possession from "@svc/cluster/proof/Possession"
import { RequestSignatures, targetOf } from "@svc/cluster/proof/RequestSignatures"
import { Verifications } from "@svc/cluster/proof/Verifications"
import { SigningKeys } from "@svc/cluster/proof/SigningKeys"
import { Effect } from "effect"
import * as ActorCalls from "../account/ActorCalls.ts"
import * as AuditNotes from "../audit/AuditNotes.ts"
import { mayChangeLists, onRecord, recordedAs } from "./ProofRecords.ts"
import { unchanged, untagged } from "../EntityTags.ts"
import { unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"

const sameSettings = unchanged(ProofSettings)

export const layer = RequestServices.group(
  Api,
  "proof",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const signingKeys = yield* SigningKeys
    const tokens = yield* IdentityTokens
    const signatures = yield* RequestSignatures
    const noting = yield* AuditNotes.make
    const verifications = yield* Verifications
    const book = yield* Addresses

    const keysOf = Effect.fnUntraced(function* ({ id, orgId, handle, status }: SubjectInfo) {
      if (status !== "ready") return yield* notReady(status)
      const keys = yield* signingKeys.ensured({ id, orgId })
      return { did: did(book, handle), did_url: didUrl(book, handle), jwks_url: jwksUrl(book, handle), keys }
    })

    return handlers.handleAll({
      listKeys: () => Effect.flatMap(Subject, keysOf),
      registerKey: Effect.fnUntraced(function* ({ payload }) {
        const subject = yield* Subject
        const caller = yield* Caller
        // An agent proves its identity with a registered key everywhere, without the limits of its credential.
        if (fallsShort(caller) !== undefined) {
          return yield* new ScopeExceeds({
            detail:
              "A registered key signs without scopes, expiry or network limits, so only a session or a key without such limits may register one.",
          })
        }
        const wanted = { audience: book.baseUrl, subject: did(book, subject.handle) }
        const key = yield* Possession.checked(payload.jwk, payload.proof, wanted)
        const registered_by = caller.kind === "session" ? null : caller.credentialId
        yield* askIdentity(subject, (actor, by) =>
          actor.AddSigningKey({ org_id: subject.orgId, ...key, name: payload.name ?? null, registered_by }, by),
        )
        const { keys } = yield* keysOf(subject)
        const registered = keys.find(({ kid }) => kid === key.kid)
        return registered ?? (yield* new NotFound({ detail: "The key was withdrawn during the request." }))
      }),
      removeKey: Effect.fnUntraced(function* ({ params, headers }) {
        yield* untagged(headers["if-match"])
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) =>
          actor.RemoveSigningKey({ org_id: subject.orgId, kid: params.kid }, by),
        )
      }),
      settings: () => Effect.flatMap(Subject, ({ id }) => tokens.settings(id)),
      updateSettings: Effect.fnUntraced(function* ({ payload, headers }) {
        const subject = yield* Subject
        const seen = yield* sameSettings(headers["if-match"], tokens.settings(subject.id))
        yield* unlessMade(noting((note) => tokens.set(subject, payload, seen, note)))
        return yield* tokens.settings(subject.id)
      }),
      createToken: Effect.fnUntraced(function* ({ payload }) {
        const subject = yield* Subject
        const caller = yield* Caller
        const { audience, expires_in: seconds = tokenSeconds.usual, nonce, algorithm = "RS256" } = payload
        if (isOurs(book, audience)) {
          return yield* new AudienceNotAllowed({ detail: "A token is for another service, not for this one." })
        }
        if (algorithm !== "RS256" && algorithm !== "ES256") {
          return yield* new AlgorithmUnsupported({ detail: "A token is signed with RS256 or ES256." })
        }
        if (caller.networks !== null) {
          return yield* new ScopeExceeds({
            detail: "A token is valid in every network, so a key that is limited to networks cannot create one.",
          })
        }
        const id = yield* makeUuidV7
        yield* recordedAs("token", id, audience)
        const request = { id, audience, seconds, nonce, algorithm, isFree: mayChangeLists(caller) } as const
        return yield* onRecord(noting, (note) => tokens.issue(subject, caller, request, note, subject.by))
      }),
      createSignature: Effect.fnUntraced(function* ({ payload }) {
        const subject = yield* Subject
        const caller = yield* Caller
        const target = yield* targetOf(book, payload)
        yield* recordedAs("signature", yield* makeUuidV7, `${target.method} ${target.url.origin}${target.url.pathname}`)
        return yield* onRecord(noting, (note) => signatures.create(subject, caller, target, note))
      }),
      verify: Effect.fnUntraced(function* ({ payload }) {
        const { org } = yield* Caller
        const given = [payload.token, payload.card, payload.request].filter((proof) => proof !== undefined)
        if (given.length !== 1) {
          return yield* new InvalidRequest({
            detail: "Give one of `token`, `card` and `request`.",
            errors: [{ path: "/", message: "expected one of token, card and request" }],
          })
        }
        return yield* verifications.verify(payload, org.id)
      }),
      rotateKey: Effect.fnUntraced(function* () {
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) => actor.RotateSigningKey({ org_id: subject.orgId }, by))
        return yield* keysOf(subject)
      }),
    })
  }),
)
