/** Connects an account, and reads its current status and capabilities from its server. */
import { CredentialSession, XRPCError } from "@atproto/api"
import type { Capability } from "@svc/domain/connectors/Connector"
import { Effect, Redacted } from "effect"
import { CredentialRefused, InputRefused, type PlatformFailure } from "../Failure.ts"
import type { AuthorizationReturn, Connected, Session, AccountStatus, PlatformContext } from "../Platform.ts"
import * as AppPassword from "./AppPassword.ts"
import * as Connection from "./Connection.ts"
import * as Credential from "./Credential.ts"
import type { Network } from "./Network.ts"
import * as OAuth from "./OAuth.ts"
import * as Profile from "./Profile.ts"
import * as LibraryFetch from "./LibraryFetch.ts"

/** Capabilities of every credential. */
const always: ReadonlyArray<Capability> = ["post", "reply", "thread", "notifications"]

/** The note that stores whether the account may send direct messages, so that an outage of the chat service removes no capability. */
const dmNote = "dm"

export const login = Effect.fn("Bluesky.login")(function* (
  network: Network,
  { http }: PlatformContext,
  given: { readonly account: string; readonly password: Redacted.Redacted<string> },
): Effect.fn.Return<Connected, PlatformFailure> {
  const library = yield* LibraryFetch.make(http)
  const { did, pds } = yield* network.resolve(library, yield* parseAccount(given.account))
  const session = new CredentialSession(pds, library.fetch)
  // A 401 always means a wrong password; the error name depends on the server.
  yield* library.call(() =>
    session.login({ identifier: did, password: Redacted.value(given.password) }).catch((error: unknown) => {
      if (!(error instanceof XRPCError) || error.status !== 401) throw error
      throw new CredentialRefused({ message: error.message })
    }),
  )
  const tokens = AppPassword.tokensOf(session.session!, session.dispatchUrl)
  const connection = Connection.make(network, session, { did, service: session.dispatchUrl.origin }, library)
  const status = yield* Effect.onError(
    Effect.flatMap(canChat(connection), (dm) => statusOf(connection, dm ?? false)),
    // The session would otherwise stay open with nobody using it.
    () => Effect.ignore(AppPassword.end(tokens, library)),
  )
  return { ...status, credential: Credential.seal(tokens), via: "app_password" }
})

export const finish = Effect.fnUntraced(function* (
  network: Network,
  { http }: PlatformContext,
  back: AuthorizationReturn,
): Effect.fn.Return<Connected, PlatformFailure> {
  const library = yield* LibraryFetch.make(http)
  const { session, credential } = yield* OAuth.finish(network, library, back)
  const { aud } = yield* library.call(() => session.getTokenInfo(false))
  const connection = Connection.make(network, session, { did: session.did, service: new URL(aud).origin }, library)
  const status = yield* Effect.onError(
    Effect.flatMap(canChat(connection), (dm) => statusOf(connection, dm ?? false)),
    () => Effect.ignore(library.call(() => session.signOut())),
  )
  return { ...status, credential, via: "oauth" }
})

export const inspect = (network: Network, session: Session): Effect.Effect<AccountStatus, PlatformFailure> =>
  Connection.using(
    network,
    session,
    Effect.fn("Bluesky.inspect")(function* (connection) {
      const now = yield* canChat(connection)
      if (now !== undefined) yield* session.notes.write(dmNote, String(now))
      const dm = now ?? (yield* session.notes.read(dmNote)) === "true"
      return yield* statusOf(connection, dm)
    }),
  )

/** Returns whether the account may send direct messages, as last stored. */
export const mayDm = (session: Session) => Effect.map(session.notes.read(dmNote), (kept) => kept !== "false")

/** Stores that the account may not send direct messages. */
export const cannotDm = (session: Session) => session.notes.write(dmNote, "false")

const statusOf = Effect.fnUntraced(function* (
  connection: Connection.Connection,
  dm: boolean,
): Effect.fn.Return<AccountStatus, PlatformFailure> {
  const { agent, call, did, service } = connection
  const { data } = yield* call(() => agent.com.atproto.server.getSession())
  if (data.did !== did) return yield* new CredentialRefused({ message: "The session belongs to another account." })
  if (data.active === false) {
    return yield* new CredentialRefused({ message: `The account is ${data.status ?? "not active"} at its server.` })
  }
  return {
    account: { name: data.handle, id: did, service },
    capabilities: dm ? [...always, "dm"] : always,
    disclosed: Profile.isDisclosed((yield* Profile.read(connection)).record),
  }
})

/**
 * Checks with a request whether the credential may send direct messages, which is chosen when an app password is
 * created. Returns undefined if the chat service is unavailable.
 */
const canChat = ({ chat, call }: Connection.Connection): Effect.Effect<boolean | undefined, PlatformFailure> =>
  call(() => chat.chat.bsky.convo.listConvos({ limit: 1 })).pipe(
    Effect.as(true),
    Effect.catchTags({
      Unsupported: () => Effect.succeed(false),
      PlatformRefused: () => Effect.succeed(false),
      PlatformUnreachable: () => Effect.succeed(undefined),
      PlatformRateLimited: () => Effect.succeed(undefined),
    }),
  )

/** Validates an account name: a handle, with or without `@`, or a DID. */
const parseAccount = (account: string): Effect.Effect<string, InputRefused> => {
  const name = account.trim().replace(/^@/, "")
  return /^did:(plc|web):\S{1,200}$/.test(name) || /^[^\s@/]{1,250}\.[^\s@/]{1,60}$/.test(name)
    ? Effect.succeed(name)
    : Effect.fail(
        new InputRefused({
          message: "The account must be a handle, such as `ada.bsky.social`, or a DID.",
          path: "/account",
        }),
      )
}
