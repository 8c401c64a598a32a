/**
 * Sessions of an app password (com.atproto.server.createSession). One is made when the account is connected and used
 * from then on, since making them is rate limited; its refresh token is spent and replaced by one writer at a time.
 */
import { Agent, type AtpSessionData, CredentialSession } from "@atproto/api"
import { Effect } from "effect"
import { CredentialRefused } from "../Failure.ts"
import type { Session } from "../Platform.ts"
import * as Credential from "./Credential.ts"
import type { PasswordTokens } from "./Credential.ts"
import type { LibraryFetch } from "./LibraryFetch.ts"

/** The library's session, with the Connector's row in place of its memory. */
class KeptSession extends CredentialSession {
  readonly #renew: (held: KeptSession, spend: () => Promise<unknown>) => Promise<void>
  #renewing: Promise<void> | undefined

  constructor(
    tokens: PasswordTokens,
    fetch: typeof globalThis.fetch,
    renew: (held: KeptSession, spend: () => Promise<unknown>) => Promise<void>,
  ) {
    super(new URL(tokens.service), fetch)
    this.#renew = renew
    this.hold(tokens)
  }

  hold({ did, handle, accessJwt, refreshJwt }: PasswordTokens) {
    this.session = { did, handle, accessJwt, refreshJwt, active: true }
  }

  /** The library calls this when a token has expired. */
  override async refreshSession(): ReturnType<CredentialSession["refreshSession"]> {
    let answered: Awaited<ReturnType<CredentialSession["refreshSession"]>> | undefined
    this.#renewing ??= this.#renew(this, async () => (answered = await super.refreshSession())).finally(() => {
      this.#renewing = undefined
    })
    await this.#renewing
    // Whoever asks for a refresh looks at the session afterwards; what another's refresh was answered is not known here.
    return answered!
  }
}

/** The session of a Connector. */
export const resume = (session: Session, tokens: PasswordTokens, wire: LibraryFetch): CredentialSession =>
  new KeptSession(tokens, wire.fetch, (held, spend) =>
    wire
      .promised(
        session.exclusively(
          Effect.gen(function* () {
            const now = yield* Credential.open(session)
            if (now.kind !== "app_password") {
              return yield* new CredentialRefused({ message: "The account was connected in another way meanwhile." })
            }
            // Another call has spent the token that this one holds.
            if (now.refreshJwt !== held.session?.refreshJwt) return held.hold(now)
            yield* wire.call(spend)
            yield* session.storeCredential(Credential.seal(tokensOf(held.session!, held.dispatchUrl)))
          }),
        ),
      )
      .catch((error: unknown) => {
        wire.fail(error)
        throw error
      }),
  )

export const tokensOf = ({ did, handle, accessJwt, refreshJwt }: AtpSessionData, service: URL): PasswordTokens => ({
  kind: "app_password",
  service: service.origin,
  did,
  handle,
  accessJwt,
  refreshJwt,
})

/** Ends the session; one that has ended is no failure. */
export const end = (tokens: PasswordTokens, wire: LibraryFetch) => {
  const { com } = new Agent({ service: tokens.service, fetch: wire.fetch })
  const headers = { authorization: `Bearer ${tokens.refreshJwt}` }
  return wire
    .call(() => com.atproto.server.deleteSession(undefined, { headers }))
    .pipe(
      Effect.asVoid,
      Effect.catchTag("CredentialRefused", () => Effect.void),
    )
}
