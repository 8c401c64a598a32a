/** What the account is and may, as its server says it now; and the connections that are just made. */
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

const always: ReadonlyArray<Capability> = ["post", "reply", "thread", "notifications"]

/** Says that the account may send direct messages; kept, so that a chat service that is away takes nothing from it. */
const dmKept = "dm"

export const login = Effect.fn("Bluesky.login")(function* (
  network: Network,
  { http }: PlatformContext,
  given: { readonly account: string; readonly password: Redacted.Redacted<string> },
): Effect.fn.Return<Connected, PlatformFailure> {
  const wire = yield* LibraryFetch.make(http)
  const { did, pds } = yield* network.find(wire, yield* named(given.account))
  const session = new CredentialSession(pds, wire.fetch)
  // 401 is the password's, whatever the server's words are.
  yield* wire.call(() =>
    session.login({ identifier: did, password: Redacted.value(given.password) }).catch((error: unknown) => {
      if (!(error instanceof XRPCError) || error.status !== 401) throw error
      throw new CredentialRefused({ message: error.message })
    }),
  )
  const tokens = AppPassword.tokensOf(session.session!, session.dispatchUrl)
  const connection = Connection.over(network, session, { did, service: session.dispatchUrl.origin }, wire)
  const standing = yield* Effect.onError(
    Effect.flatMap(speaks(connection), (dm) => standingOf(connection, dm ?? false)),
    // Nobody would know of the session any more.
    () => Effect.ignore(AppPassword.end(tokens, wire)),
  )
  return { ...standing, credential: Credential.seal(tokens), via: "app_password" }
})

export const finish = Effect.fnUntraced(function* (
  network: Network,
  { http }: PlatformContext,
  back: AuthorizationReturn,
): Effect.fn.Return<Connected, PlatformFailure> {
  const wire = yield* LibraryFetch.make(http)
  const { session, credential } = yield* OAuth.finish(network, wire, back)
  const { aud } = yield* wire.call(() => session.getTokenInfo(false))
  const connection = Connection.over(network, session, { did: session.did, service: new URL(aud).origin }, wire)
  const standing = yield* Effect.onError(
    Effect.flatMap(speaks(connection), (dm) => standingOf(connection, dm ?? false)),
    () => Effect.ignore(wire.call(() => session.signOut())),
  )
  return { ...standing, credential, via: "oauth" }
})

export const look = (network: Network, session: Session): Effect.Effect<AccountStatus, PlatformFailure> =>
  Connection.using(
    network,
    session,
    Effect.fn("Bluesky.look")(function* (connection) {
      const now = yield* speaks(connection)
      if (now !== undefined) yield* session.notes.write(dmKept, String(now))
      const dm = now ?? (yield* session.notes.read(dmKept)) === "true"
      return yield* standingOf(connection, dm)
    }),
  )

/** Whether the account may send direct messages, as far as is known without asking. */
export const mayDm = (session: Session) => Effect.map(session.notes.read(dmKept), (kept) => kept !== "false")

/** Notes that it may not. */
export const cannotDm = (session: Session) => session.notes.write(dmKept, "false")

const standingOf = Effect.fnUntraced(function* (
  connection: Connection.Connection,
  dm: boolean,
): Effect.fn.Return<AccountStatus, PlatformFailure> {
  const { agent, call, did, service } = connection
  const { data } = yield* call(() => agent.com.atproto.server.getSession())
  if (data.did !== did) return yield* new CredentialRefused({ message: "The session is another account's." })
  if (data.active === false) {
    return yield* new CredentialRefused({ message: `The account is ${data.status ?? "not active"} at its server.` })
  }
  return {
    account: { name: data.handle, id: did, service },
    capabilities: dm ? [...always, "dm"] : always,
    disclosed: Profile.isDisclosed((yield* Profile.read(connection)).record),
  }
})

/** Asks the chat service; undefined where it did not answer. An app password says whether it may when it is made. */
const speaks = ({ chat, call }: Connection.Connection): Effect.Effect<boolean | undefined, PlatformFailure> =>
  call(() => chat.chat.bsky.convo.listConvos({ limit: 1 })).pipe(
    Effect.as(true),
    Effect.catchTags({
      Unsupported: () => Effect.succeed(false),
      PlatformRefused: () => Effect.succeed(false),
      PlatformUnreachable: () => Effect.succeed(undefined),
      PlatformRateLimited: () => Effect.succeed(undefined),
    }),
  )

/** A handle, with or without `@`, or a DID. */
const named = (account: string): Effect.Effect<string, InputRefused> => {
  const name = account.trim().replace(/^@/, "")
  return /^did:(plc|web):\S{1,200}$/.test(name) || /^[^\s@/]{1,250}\.[^\s@/]{1,60}$/.test(name)
    ? Effect.succeed(name)
    : Effect.fail(
        new InputRefused({
          message: "The account is a handle, as in `ada.bsky.social`, or a DID.",
          path: "/account",
        }),
      )
}
