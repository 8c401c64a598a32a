import { Addresses, did, didUrl, jwksUrl } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Caller, Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { fallsShort } from "@svc/domain/account/KeyRights"
import { IdentityNotReady, ScopeExceeds } from "@svc/domain/problems/Problem"
import * as Possession from "@svc/cluster/proof/Possession"
import { SigningKeys } from "@svc/cluster/proof/SigningKeys"
import { Effect } from "effect"
import * as ActorCalls from "../account/ActorCalls.ts"
import { untagged } from "../EntityTags.ts"
import * as RequestServices from "../http/RequestServices.ts"

export const layer = RequestServices.group(
  Api,
  "proof",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const signingKeys = yield* SigningKeys
    const book = yield* Addresses

    const keysOf = Effect.fnUntraced(function* ({ id, orgId, handle, status }: SubjectInfo) {
      if (status !== "ready") return yield* new IdentityNotReady({ detail: `The Identity is ${status}.` })
      const keys = yield* signingKeys.ensured({ id, orgId })
      return { did: did(book, handle), did_url: didUrl(book, handle), jwks_url: jwksUrl(book, handle), keys }
    })

    return handlers.handleAll({
      listKeys: () => Effect.flatMap(Subject, keysOf),
      registerKey: Effect.fnUntraced(function* ({ payload }) {
        const subject = yield* Subject
        const caller = yield* Caller
        // With its key, an agent proves its identity everywhere, without the limits of the credential.
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
        return keys.find(({ kid }) => kid === key.kid)!
      }),
      removeKey: Effect.fnUntraced(function* ({ params, headers }) {
        yield* untagged(headers["if-match"])
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) =>
          actor.RemoveSigningKey({ org_id: subject.orgId, kid: params.kid }, by),
        )
      }),
      rotateKey: Effect.fnUntraced(function* () {
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) => actor.RotateSigningKey({ org_id: subject.orgId }, by))
        return yield* keysOf(subject)
      }),
    })
  }),
)
