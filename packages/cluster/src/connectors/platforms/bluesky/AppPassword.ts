/**
 * Sessions that were created with an app password (com.atproto.server.createSession). A Connector keeps using the
 * session that was created when it was connected, because creating sessions is rate limited. Only one writer at a time
 * uses and replaces its refresh token.
 */
import { type AtpSessionData, CredentialSession } from "@atproto/api"
import { Effect } from "effect"
import type { Session } from "../Platform.ts"
import { Client } from "./Client.ts"
import * as Credential from "./Credential.ts"
import type { PasswordTokens } from "./Credential.ts"
import type { LibraryFetch } from "./LibraryFetch.ts"

/** The library's session, which stores its tokens in the Connector's row instead of in memory. */
class StoredSession extends CredentialSession {
  readonly #renew: (stored: StoredSession, refresh: () => Promise<unknown>) => Promise<void>
  #renewing: Promise<void> | undefined

  constructor(
    tokens: PasswordTokens,
    fetch: typeof globalThis.fetch,
    renew: (stored: StoredSession, refresh: () => Promise<unknown>) => Promise<void>,
  ) {
    super(new URL(tokens.service), fetch)
    this.#renew = renew
    this.setTokens(tokens)
  }

  setTokens({ did, handle, accessJwt, refreshJwt }: PasswordTokens) {
    this.session = { did, handle, accessJwt, refreshJwt, active: true }
  }

  /** Refreshes the tokens. The library calls this when the access token has expired. */
  override async refreshSession(): ReturnType<CredentialSession["refreshSession"]> {
    let refreshed: Awaited<ReturnType<CredentialSession["refreshSession"]>> | undefined
    this.#renewing ??= this.#renew(this, async () => (refreshed = await super.refreshSession())).finally(() => {
      this.#renewing = undefined
    })
    await this.#renewing
    // The library only reads the session afterwards. The response is unknown if another call did the refresh.
    return refreshed!
  }
}

/** Returns the session of a Connector. */
export const resume = (session: Session, tokens: PasswordTokens, library: LibraryFetch): CredentialSession =>
  new StoredSession(tokens, library.fetch, (stored, refresh) =>
    library
      .runPromise(
        session.exclusively(
          Effect.gen(function* () {
            const current = yield* Credential.open(session)
            if (current.kind !== "app_password") return yield* Credential.replaced()
            // Another call has already used the refresh token of this session.
            if (current.refreshJwt !== stored.session?.refreshJwt) return stored.setTokens(current)
            yield* library.call(refresh)
            yield* session.storeCredential(Credential.seal(tokensOf(stored.session!, stored.dispatchUrl)))
          }),
        ),
      )
      .catch((error: unknown) => {
        library.fail(error)
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

/** Ends the session. Succeeds if the session is already invalid. */
export const end = (tokens: PasswordTokens, library: LibraryFetch) => {
  const { com } = new Client((path, init) => library.fetch(new URL(path, tokens.service), init))
  const headers = { authorization: `Bearer ${tokens.refreshJwt}` }
  return library
    .call(() => com.atproto.server.deleteSession(undefined, { headers }))
    .pipe(
      Effect.asVoid,
      Effect.catchTag("CredentialRefused", () => Effect.void),
    )
}
