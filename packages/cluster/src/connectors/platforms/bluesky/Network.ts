/**
 * What is the same for all accounts: where directories and services are, and a client of the library for a call. Each
 * call has a client of its own, since its stores belong to one Connector; what the client learns of servers is shared.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import {
  AtprotoHandleResolver,
  type AuthorizationServerMetadataCache,
  extractPdsUrl,
  JoseKey,
  NodeOAuthClient,
  type NodeSavedSessionStore,
  type NodeSavedStateStore,
  type OAuthClientMetadataInput,
  type ProtectedResourceMetadataCache,
  type RuntimeLock,
} from "@atproto/oauth-client-node"
import { Effect } from "effect"
import { Resolver } from "node:dns/promises"
import type { ServiceKey } from "../../../sealing/ServiceKey.ts"
import { InputRefused, type PlatformFailure, PlatformUnreachable } from "../Failure.ts"
import type { PlatformParts } from "../Platform.ts"
import * as ClientMetadata from "./ClientMetadata.ts"
import { BoundedStore } from "./BoundedStore.ts"
import { memoryNonces, type Nonces } from "./Nonces.ts"
import type { LibraryFetch } from "./LibraryFetch.ts"

export interface Places {
  /** The directory of `did:plc`. */
  readonly plc: string
  /** A server that resolves handles for us (`com.atproto.identity.resolveHandle`); else DNS and the handle's own host do. */
  readonly handles: string | undefined
  /** The DID of the service of direct messages. */
  readonly chat: string
  /** Where somebody who names no account signs in. */
  readonly service: string
}

export const places = ({ setting }: PlatformParts): Places => ({
  plc: setting("PLC_URL") ?? "https://plc.directory",
  handles: setting("HANDLE_RESOLVER"),
  chat: setting("CHAT_DID") ?? "did:web:api.bsky.chat",
  service: setting("SERVICE") ?? "https://bsky.social",
})

/** What a client keeps for its Connector. */
export interface Stores {
  readonly states: NodeSavedStateStore
  readonly sessions: NodeSavedSessionStore
  readonly nonces: Nonces
  readonly lock: RuntimeLock
}

export interface Network {
  readonly book: AddressBook
  readonly places: Places
  readonly client: (wire: LibraryFetch, stores: Stores) => Effect.Effect<NodeOAuthClient, PlatformUnreachable>
  /** Handle → DID → DID document → the server that carries the account. */
  readonly find: (wire: LibraryFetch, account: string) => Effect.Effect<Found, PlatformFailure>
}

export interface Found {
  readonly did: string
  /** `handle.invalid` where the account's handle does not lead back to it. */
  readonly handle: string
  readonly pds: URL
}

/** What servers say of themselves changes seldom. */
const metadataMillis = 10 * 60_000

export const make = (parts: PlatformParts, keys: ServiceKey["Service"]): Network => {
  const { book } = parts
  const known = places(parts)
  const development = book.environment === "development"
  const servers: AuthorizationServerMetadataCache = new BoundedStore(metadataMillis)
  const resources: ProtectedResourceMetadataCache = new BoundedStore(metadataMillis)

  const identity = Effect.gen(function* () {
    if (!ClientMetadata.isPublic(book)) return { clientMetadata: ClientMetadata.loopback(book) }
    const jwk = yield* keys.publicJwk
    const key = yield* keys.key
    const own = { ...key.export({ format: "jwk" }), kid: jwk.kid, alg: jwk.alg, key_ops: ["sign"] }
    return {
      // The document is JSON for anyone to read; the library reads it again, as a schema.
      clientMetadata: ClientMetadata.metadata(book, jwk) as OAuthClientMetadataInput,
      keyset: [yield* Effect.promise(() => JoseKey.fromImportable(JSON.stringify(own)))],
    }
  }).pipe(Effect.catch(({ message }) => Effect.fail(new PlatformUnreachable({ message }))))

  const client: Network["client"] = (wire, stores) =>
    Effect.map(
      identity,
      (identity) =>
        new NodeOAuthClient({
          ...identity,
          fetch: wire.fetch,
          allowHttp: development,
          plcDirectoryUrl: known.plc,
          handleResolver: known.handles ?? new AtprotoHandleResolver({ fetch: wire.fetch, resolveTxt }),
          stateStore: stores.states,
          sessionStore: stores.sessions,
          dpopNonceCache: stores.nonces,
          requestLock: stores.lock,
          authorizationServerMetadataCache: servers,
          protectedResourceMetadataCache: resources,
        }),
    )

  return {
    book,
    places: known,
    client,
    find: Effect.fnUntraced(function* (wire, account) {
      const { identityResolver } = yield* client(wire, nothing)
      const found = yield* wire.call(() => identityResolver.resolve(account))
      const pds = yield* wire.call(async () => extractPdsUrl(found.didDoc))
      if (pds.protocol !== "https:" && !development) {
        return yield* new InputRefused({ message: "The account's server has no https address.", path: "/account" })
      }
      return { did: found.did, handle: found.handle, pds }
    }),
  }
}

/** For a client that only looks accounts up. */
const nothing: Stores = {
  states: { get: () => undefined, set: () => {}, del: () => {} },
  sessions: { get: () => undefined, set: () => {}, del: () => {} },
  nonces: memoryNonces(),
  lock: (_, run) => run(),
}

/** Asks the name servers for `_atproto.<handle>`, and waits no longer for one that keeps silent. */
const resolveTxt = async (name: string): Promise<Array<string> | null> => {
  const dns = new Resolver({ timeout: 2_000, tries: 2 })
  try {
    return (await dns.resolveTxt(name)).slice(0, 100).map((chunks) => chunks.join(""))
  } catch {
    // The handle's own host is asked beside it.
    return null
  }
}
