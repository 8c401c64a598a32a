/**
 * The interface between the Connector actor and a platform. A platform is a folder named as in `platformNames`, whose
 * `Platform.ts` exports `make` ({@link MakePlatform}); no code outside of the folder depends on it
 * (docs/connectors.md).
 *
 * A platform stores nothing itself. It keeps state through {@link Session}, fenced and sealed. It sends requests only
 * through {@link PlatformHttp}, which validates addresses, limits the size and time of responses, and blocks requests
 * once the Connector is paused. The texts that it returns are bounded plain text (`ResponseBounds.ts`).
 */
import type { AddressBook } from "@svc/domain/Addresses"
import type { Capability, ConnectedVia, PlatformName } from "@svc/domain/connectors/Connector"
import type { Heard, InstanceRule, Page, Post } from "@svc/domain/connectors/Post"
import type { Effect, Redacted, Scope } from "effect"
import type { ServiceKey } from "../../sealing/ServiceKey.ts"
import type { Halted, InputRefused, PlatformFailure, PlatformUnreachable } from "./Failure.ts"
import type { PlatformHttp } from "./PlatformHttp.ts"

/** A credential in the platform's own format, usually JSON. The store contains it sealed. */
export type Credential = Redacted.Redacted<string>

/** The connected account. */
export interface Account {
  /** The name used to mention the account, without `@`: `ada.bsky.social`, `ada@example.social`. */
  readonly name: string
  /** The permanent id at the platform: a DID, or the number at the instance. */
  readonly id: string
  /** The origin of the account's server, such as `https://example.social`. */
  readonly service: string
}

/** The account's current status at the platform. */
export interface AccountStatus {
  readonly account: Account
  readonly capabilities: ReadonlyArray<Capability>
  /** Whether the profile is marked as automated. */
  readonly disclosed: boolean
}

/** A new connection. */
export interface Connected extends AccountStatus {
  readonly credential: Credential
  readonly via: ConnectedVia
}

/** OAuth client registrations by server, sealed per Org. */
export interface Registrations {
  readonly read: (service: string) => Effect.Effect<Credential | undefined>
  /** Stores a registration unless there is one. Returns the stored one. */
  readonly store: (service: string, registration: Credential) => Effect.Effect<Credential>
  /** Removes a registration that the server no longer accepts. */
  readonly forget: (service: string) => Effect.Effect<void>
}

/** Named notes of a connection (nonces, the chat server), sealed; at most 32, each up to 8 KiB. */
export interface PlatformStore {
  readonly read: (name: string) => Effect.Effect<string | undefined>
  readonly write: (name: string, text: string | undefined) => Effect.Effect<void, Halted>
}

/** The services for an authorization or login, before there is a connection. */
export interface PlatformContext {
  readonly http: PlatformHttp
  readonly registrations: Registrations
}

/**
 * The services for one call of a connected account. The cluster has one writer of the credential, and
 * {@link exclusively} is its lock.
 */
export interface Session extends PlatformContext {
  readonly account: Account
  readonly via: ConnectedVia
  /** The current credential. Another call may have refreshed it since this call started. */
  readonly credential: Effect.Effect<Credential, Halted>
  /**
   * Runs a refresh, one at a time across all processes. It starts with a commit under the actor's fence, so that a
   * suspended process that was replaced never spends a refresh token. Read {@link credential} again inside it, because
   * another call may have refreshed it, and {@link storeCredential} before it ends. Fails with `PlatformUnreachable`
   * while a refresh of a crashed process may have spent the token.
   */
  readonly exclusively: <A, E>(refresh: Effect.Effect<A, E>) => Effect.Effect<A, E | Halted | PlatformUnreachable>
  /** Stores a refreshed credential durably. */
  readonly storeCredential: (credential: Credential) => Effect.Effect<void, Halted>
  readonly notes: PlatformStore
}

export interface AuthorizationRequest {
  /** The account named by the caller: a handle, `user@host` or a host; undefined if none was given. */
  readonly account: string | undefined
  /** A random OAuth `state`. A platform whose library generates its own returns that instead. */
  readonly state: string
  /** Address to which the platform redirects the browser. */
  readonly redirectUri: string
}

export interface AuthorizationStart {
  readonly url: string
  /** The `state` in the redirect, which identifies this authorization. */
  readonly state: string
  /**
   * Data that `finish` needs (a PKCE verifier, a DPoP key, the server), usually JSON. Sealed, single use, short-lived.
   */
  readonly kept: Credential
  readonly instanceRules: ReadonlyArray<InstanceRule>
}

export interface AuthorizationReturn {
  readonly kept: Credential
  readonly state: string
  readonly redirectUri: string
  /** The query of the redirect, including `state` and `code`. */
  readonly query: URLSearchParams
}

/** A post to create. `options` are the options under the platform's name, not yet validated. */
export interface NewPost {
  readonly text: string
  /** URI of the post to reply to. */
  readonly replyTo: string | undefined
  readonly options: Readonly<Record<string, unknown>>
  /** Recipient of a direct message; absent for a post. */
  readonly to?: string | undefined
  /** UUID of the command. A retry has the same one, so that a platform with idempotency keys creates one post. */
  readonly command: string
  /**
   * The command started before and its outcome is unknown, for example because a process crashed. A platform without
   * idempotency keys must look for an existing post first.
   */
  readonly again: boolean
}

export interface PageRequest {
  readonly limit: number
  /** The platform's cursor from a previous page. */
  readonly cursor: string | undefined
}

/** A mention, reply or direct message for the account. */
export interface ReceivedPost {
  readonly kind: Heard
  /** Key that deduplicates Events: the post's URI. */
  readonly key: string
  readonly post: Post
  readonly at: Date
}

export interface Poll {
  /** New posts since the mark, oldest first; at most {@link pollAtMost}. */
  readonly received: ReadonlyArray<ReceivedPost>
  /** The position for the next poll. */
  readonly mark: string
  /** Whether more posts are available, so that the next poll follows immediately. */
  readonly more: boolean
  /** Earliest time for the next poll, if rate-limit headers define one. */
  readonly notBefore?: Date | undefined
}

/** Largest number of posts that a poll may return. */
export const pollAtMost = 100

/** The changes of {@link Platform.disclose}, as JSON, which {@link Platform.undisclose} reverts. */
export type Disclosure = string

export interface Platform {
  readonly name: PlatformName
  /** Name for people. */
  readonly title: string

  /** Connects with an app password; undefined if the platform has none. */
  readonly login:
    | ((
        visit: PlatformContext,
        login: { readonly account: string; readonly password: Redacted.Redacted<string> },
      ) => Effect.Effect<Connected, PlatformFailure>)
    | undefined
  /** Starts an OAuth authorization. */
  readonly authorize: (
    visit: PlatformContext,
    request: AuthorizationRequest,
  ) => Effect.Effect<AuthorizationStart, PlatformFailure>
  /** Completes an OAuth authorization. Fails with `CredentialRefused` if the platform or the person denied it. */
  readonly finish: (visit: PlatformContext, back: AuthorizationReturn) => Effect.Effect<Connected, PlatformFailure>
  /** Revokes the credential at the platform. Succeeds if the credential is already invalid. */
  readonly revoke: (session: Session) => Effect.Effect<void, PlatformFailure>

  /** Returns the account's current status. Called daily and after connecting. */
  readonly inspect: (session: Session) => Effect.Effect<AccountStatus, PlatformFailure>

  /** Validates text, recipient and options as far as possible without a call. */
  readonly validate: (post: NewPost) => Effect.Effect<void, InputRefused>
  readonly post: (session: Session, post: NewPost) => Effect.Effect<Post, PlatformFailure>
  readonly sendDm: (session: Session, post: NewPost) => Effect.Effect<Post, PlatformFailure>

  /** Returns the account's own posts, newest first. */
  readonly posts: (session: Session, page: PageRequest) => Effect.Effect<Page<Post>, PlatformFailure>
  /** Returns direct messages, newest first. */
  readonly dms: (session: Session, page: PageRequest) => Effect.Effect<Page<Post>, PlatformFailure>
  /** Returns the conversation around a post: its ancestors from the root, the post, and its replies. */
  readonly thread: (session: Session, uri: string) => Effect.Effect<Page<Post>, PlatformFailure>
  /** Returns mentions, replies and direct messages, newest first. */
  readonly notifications: (session: Session, page: PageRequest) => Effect.Effect<Page<ReceivedPost>, PlatformFailure>
  /**
   * Returns the posts since the mark. The first poll has no mark and returns only the current position, so that no old
   * post is reported.
   */
  readonly poll: (session: Session, mark: string | undefined) => Effect.Effect<Poll, PlatformFailure>
  /**
   * Listens for new posts until the stream is lost; undefined if the platform has no streams. Calls `notify` when the
   * stream opens and for each message that may concern the account. This only requests a poll, so stream content is
   * neither trusted nor stored. Fails with `Unsupported` if this server has no stream.
   */
  readonly stream: ((session: Session, notify: () => void) => Effect.Effect<never, PlatformFailure>) | undefined

  /**
   * Marks the profile as automated with the platform's flag and a line in the profile text, and keeps everything else.
   * Returns what was changed, or undefined if the profile was already marked.
   */
  readonly disclose: (session: Session) => Effect.Effect<Disclosure | undefined, PlatformFailure>
  readonly undisclose: (session: Session, changed: Disclosure) => Effect.Effect<void, PlatformFailure>
}

/** Parameters of a platform. */
export interface PlatformParts {
  readonly book: AddressBook
  /** The line for profiles that are marked as automated. */
  readonly disclosure: string
  /** Returns a setting for this platform: `PLC_URL` of Bluesky is `SVC_BLUESKY_PLC_URL`. */
  readonly setting: (name: string) => string | undefined
}

/** Creates a platform, once per process. `ServiceKey` is the signing key of this OAuth client. */
export type MakePlatform = (parts: PlatformParts) => Effect.Effect<Platform, never, ServiceKey | Scope.Scope>

/** The exports of `platforms/<name>/Platform.ts`. */
export interface PlatformModule {
  readonly make: MakePlatform
  /** Names of the settings that it reads, without their prefix. */
  readonly settings: ReadonlyArray<string>
}
