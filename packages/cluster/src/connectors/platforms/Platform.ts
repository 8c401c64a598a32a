/**
 * What a platform has to do for the Connector actor. A platform is a folder here, named as in `platformNames`, whose
 * `Platform.ts` exports `make` ({@link MakePlatform}); nothing outside of the folder knows more of it (docs/connectors.md).
 *
 * A platform keeps nothing of its own: what must last goes through {@link Session}, under the actor's fence and sealed.
 * It reaches the world only through the {@link PlatformHttp} that it is handed, which judges addresses, bounds answers in bytes
 * and time, and lets nothing out once the Connector is paused. What it answers is plain text and bounded (`Bounds.ts`).
 */
import type { AddressBook } from "@svc/domain/Addresses"
import type { Capability, ConnectedVia } from "@svc/domain/connectors/Connector"
import type { PlatformName } from "@svc/domain/connectors/PlatformName"
import type { Heard, InstanceRule, Page, Post } from "@svc/domain/connectors/Post"
import type { Effect, Redacted, Scope } from "effect"
import type { ServiceKey } from "../../sealing/ServiceKey.ts"
import type { Halted, InputRefused, PlatformFailure, PlatformUnreachable } from "./Failure.ts"
import type { PlatformHttp } from "./PlatformHttp.ts"

/** A credential as the platform wrote it, JSON by custom. It is sealed where it is kept and only its platform reads it. */
export type Credential = Redacted.Redacted<string>

/** Who is connected. */
export interface Account {
  /** As one mentions it there, without `@`: `ada.bsky.social`, `ada@example.social`. */
  readonly name: string
  /** The platform's lasting id: a DID, the number at the instance. */
  readonly id: string
  /** The origin of the server that carries it, as in `https://example.social`. */
  readonly service: string
}

/** What the platform says of the account now. */
export interface AccountStatus {
  readonly account: Account
  readonly capabilities: ReadonlyArray<Capability>
  /** Whether the profile says that it is automated. */
  readonly disclosed: boolean
}

/** A connection that was just made. */
export interface Connected extends AccountStatus {
  readonly credential: Credential
  readonly via: ConnectedVia
}

/** What a visit keeps of a server that knows us as an application, sealed per Org. */
export interface Registrations {
  readonly read: (service: string) => Effect.Effect<Credential | undefined>
  /** Keeps it unless there is one already; answers the one that is kept. */
  readonly store: (service: string, registration: Credential) => Effect.Effect<Credential>
  /** The server does not know it any more. */
  readonly forget: (service: string) => Effect.Effect<void>
}

/** Small named texts beside the credential (nonces, a chat's server), sealed; at most 32, each of at most 8 KiB. */
export interface PlatformStore {
  readonly read: (name: string) => Effect.Effect<string | undefined>
  readonly write: (name: string, text: string | undefined) => Effect.Effect<void, Halted>
}

/** Before there is a connection: for one authorization or password login. */
export interface PlatformContext {
  readonly http: PlatformHttp
  readonly registrations: Registrations
}

/**
 * For one call of a Connector. There is one writer of its credential in the cluster; {@link exclusively} is its lock.
 */
export interface Session extends PlatformContext {
  readonly account: Account
  readonly via: ConnectedVia
  /** The credential as it stands now: another call may have refreshed it since this one began. */
  readonly credential: Effect.Effect<Credential, Halted>
  /**
   * Runs a refresh. One at a time over all processes: it begins with a commit under the actor's fence, so an owner that
   * was replaced while it was frozen never spends a refresh token. Read {@link credential} inside it once more, since the
   * one who held the lock before may have refreshed it, and {@link storeCredential} the new one before it ends. It is
   * `PlatformUnreachable` while a refresh whose process went away may have spent the token.
   */
  readonly exclusively: <A, E>(refresh: Effect.Effect<A, E>) => Effect.Effect<A, E | Halted | PlatformUnreachable>
  /** Durable when it answers. */
  readonly storeCredential: (credential: Credential) => Effect.Effect<void, Halted>
  readonly notes: PlatformStore
}

export interface AuthorizationRequest {
  /** What the caller gave: a handle, `user@host`, a host; undefined where it named none. */
  readonly account: string | undefined
  /** A random text to travel as OAuth's `state`; a platform whose library makes its own answers that one instead. */
  readonly state: string
  /** Where the platform sends the browser back to: a page of ours. */
  readonly redirectUri: string
}

export interface AuthorizationStart {
  readonly url: string
  /** The `state` that comes back in the address; it names this authorization from then on. */
  readonly state: string
  /** What `finish` needs again (a PKCE verifier, a DPoP key, the server), JSON by custom. Sealed, single use, short-lived. */
  readonly kept: Credential
  readonly instanceRules: ReadonlyArray<InstanceRule>
}

export interface AuthorizationReturn {
  readonly kept: Credential
  readonly state: string
  readonly redirectUri: string
  /** The query of the address that the platform sent the browser to, `state` and `code` among it. */
  readonly query: URLSearchParams
}

/** What is to be written. `options` is what stood under the platform's own name, and is not judged yet. */
export interface NewPost {
  readonly text: string
  /** The uri of the post to answer. */
  readonly replyTo: string | undefined
  readonly options: Readonly<Record<string, unknown>>
  /** Whom a direct message goes to; absent for a post. */
  readonly to?: string | undefined
  /** The command's uuid: the same when it comes again, so that a platform that can makes one post of it. */
  readonly command: string
  /**
   * The command was begun before and its outcome is not known (a process died). A platform whose calls are not idempotent
   * looks for what it may have made before it makes another.
   */
  readonly again: boolean
}

export interface PageRequest {
  readonly limit: number
  /** The platform's own cursor, as an earlier page gave it. */
  readonly cursor: string | undefined
}

/** Something that was said to the account. */
export interface ReceivedPost {
  readonly kind: Heard
  /** What it is known by, so that it is told once: the post's uri. */
  readonly key: string
  readonly post: Post
  readonly at: Date
}

export interface Poll {
  /** What came since the mark, oldest first; at most {@link pollAtMost}. */
  readonly received: ReadonlyArray<ReceivedPost>
  /** Where the next poll goes on. It is committed together with what was heard. */
  readonly mark: string
  /** There is more right now: the next poll follows at once. */
  readonly more: boolean
  /** Not before then, where the platform's rate-limit headers say so. */
  readonly notBefore?: Date | undefined
}

/** How many posts a poll may answer. */
export const pollAtMost = 100

/** What {@link Platform.disclose} has changed, JSON, so that {@link Platform.undisclose} takes back that and nothing else. */
export type Disclosure = string

export interface Platform {
  readonly name: PlatformName
  /** How people call it. */
  readonly title: string

  /** Connects by an app password; undefined where the platform has none. */
  readonly login:
    | ((
        visit: PlatformContext,
        login: { readonly account: string; readonly password: Redacted.Redacted<string> },
      ) => Effect.Effect<Connected, PlatformFailure>)
    | undefined
  /** Begins OAuth: nothing is connected yet. */
  readonly authorize: (
    visit: PlatformContext,
    request: AuthorizationRequest,
  ) => Effect.Effect<AuthorizationStart, PlatformFailure>
  /** Ends OAuth. `CredentialRefused` where the platform or the person said no. */
  readonly finish: (visit: PlatformContext, back: AuthorizationReturn) => Effect.Effect<Connected, PlatformFailure>
  /** Ends the credential at the platform; one that is gone there already is revoked. */
  readonly revoke: (session: Session) => Effect.Effect<void, PlatformFailure>

  /** What the account is and may now: asked daily, and after each connection. */
  readonly inspect: (session: Session) => Effect.Effect<AccountStatus, PlatformFailure>

  /** Judges text, recipient and options without any call, as far as that goes (unknown options, the platform's fixed limits). */
  readonly validate: (post: NewPost) => Effect.Effect<void, InputRefused>
  readonly post: (session: Session, post: NewPost) => Effect.Effect<Post, PlatformFailure>
  readonly sendDm: (session: Session, post: NewPost) => Effect.Effect<Post, PlatformFailure>

  /** The account's own posts, newest first. */
  readonly posts: (session: Session, page: PageRequest) => Effect.Effect<Page<Post>, PlatformFailure>
  /** Direct messages, newest first. */
  readonly dms: (session: Session, page: PageRequest) => Effect.Effect<Page<Post>, PlatformFailure>
  /** The conversation around a post: what it answers from the root on, the post, what answers it. */
  readonly thread: (session: Session, uri: string) => Effect.Effect<Page<Post>, PlatformFailure>
  /** Mentions, replies and direct messages, newest first. */
  readonly notifications: (session: Session, page: PageRequest) => Effect.Effect<Page<ReceivedPost>, PlatformFailure>
  /** What came since the mark; with no mark only where the next poll begins, so that nothing old is told. */
  readonly poll: (session: Session, mark: string | undefined) => Effect.Effect<Poll, PlatformFailure>
  /**
   * Lasts while the platform would say at once that something was said; undefined where none of its servers would.
   * `heard` asks for a poll, which alone tells what it was and where to go on, so nothing that comes here needs to be
   * believed or kept. It is called when the stream is open, since what came before that is not in it, and for each thing
   * that may be for us. `Unsupported` where this server has no stream.
   */
  readonly stream: ((session: Session, heard: () => void) => Effect.Effect<never, PlatformFailure>) | undefined

  /**
   * Makes the profile say that the account is automated: the platform's flag and a line in the profile's text, keeping
   * everything else. Answers what it changed; doing it again changes nothing and answers undefined.
   */
  readonly disclose: (session: Session) => Effect.Effect<Disclosure | undefined, PlatformFailure>
  readonly undisclose: (session: Session, changed: Disclosure) => Effect.Effect<void, PlatformFailure>
}

/** What a platform is made of, besides what each call hands it. */
export interface PlatformParts {
  readonly book: AddressBook
  /** The line that a disclosed profile carries. */
  readonly disclosure: string
  /** A setting of the deployment for this platform: `PLC_URL` of Bluesky is `SVC_BLUESKY_PLC_URL`. */
  readonly setting: (name: string) => string | undefined
}

/** Made once a process. `ServiceKey` is our own signing key as an OAuth client. */
export type MakePlatform = (parts: PlatformParts) => Effect.Effect<Platform, never, ServiceKey | Scope.Scope>

/** What the module `platforms/<name>/Platform.ts` exports. */
export interface PlatformModule {
  readonly make: MakePlatform
  /** The settings it asks for, without their prefix. */
  readonly settings: ReadonlyArray<string>
}
