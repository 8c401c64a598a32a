/**
 * The network that all accounts share: the addresses of directories and services, and the library's OAuth client. Each
 * call has its own client, because the client's stores belong to one Connector. Server metadata is cached for all.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import { BoundedMap } from "@svc/domain/BoundedMap"
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
import { memoryNonces, type Nonces } from "./Nonces.ts"
import type { LibraryFetch } from "./LibraryFetch.ts"

interface Endpoints {
  /** The directory of `did:plc`. */
  readonly plc: string
  /** Server that resolves handles (`com.atproto.identity.resolveHandle`), instead of DNS and the handle's host. */
  readonly handles: string | undefined
  /** The DID of the chat service. */
  readonly chat: string
  /** The server for an authorization that names no account. */
  readonly service: string
}

const endpoints = ({ setting }: PlatformParts): Endpoints => ({
  plc: setting("PLC_URL") ?? "https://plc.directory",
  handles: setting("HANDLE_RESOLVER"),
  chat: setting("CHAT_DID") ?? "did:web:api.bsky.chat",
  service: setting("SERVICE") ?? "https://bsky.social",
})

/** The state of a client that belongs to one Connector. */
export interface Stores {
  readonly states: NodeSavedStateStore
  readonly sessions: NodeSavedSessionStore
  readonly nonces: Nonces
  readonly lock: RuntimeLock
}

export interface Network {
  readonly book: AddressBook
  readonly endpoints: Endpoints
  readonly client: (library: LibraryFetch, stores: Stores) => Effect.Effect<NodeOAuthClient, PlatformUnreachable>
  /** Resolves a handle to its DID, the DID to its document, and the document to the account's server. */
  readonly resolve: (library: LibraryFetch, account: string) => Effect.Effect<ResolvedAccount, PlatformFailure>
}

interface ResolvedAccount {
  readonly did: string
  /** The verified handle, or `handle.invalid` if the handle does not resolve to this DID. */
  readonly handle: string
  readonly pds: URL
}

/** How long server metadata is cached, and for how many servers. */
const metadataMillis = 10 * 60_000
const metadataServers = 1_000

const metadataCache = <V>() => {
  const entries = new BoundedMap<string, { readonly value: V; readonly until: number }>(metadataServers)
  return {
    get: (key: string) => {
      const entry = entries.get(key)
      // oxlint-disable-next-line no-restricted-properties -- the libraries read the same clock
      return entry === undefined || entry.until < Date.now() ? undefined : entry.value
    },
    // oxlint-disable-next-line no-restricted-properties -- the libraries read the same clock
    set: (key: string, value: V) => void entries.set(key, { value, until: Date.now() + metadataMillis }),
    del: (key: string) => void entries.delete(key),
  }
}

export const make = (parts: PlatformParts, keys: ServiceKey["Service"]): Network => {
  const { book } = parts
  const configured = endpoints(parts)
  const development = book.environment === "development"
  const servers: AuthorizationServerMetadataCache = metadataCache()
  const resources: ProtectedResourceMetadataCache = metadataCache()

  const identity = Effect.gen(function* () {
    if (!ClientMetadata.isPublic(book)) return { clientMetadata: ClientMetadata.loopback(book) }
    const jwk = yield* keys.publicJwk
    const key = yield* keys.key
    const own = { ...key.export({ format: "jwk" }), kid: jwk.kid, alg: jwk.alg, key_ops: ["sign"] }
    return {
      // The library validates the metadata with its own schema.
      clientMetadata: ClientMetadata.metadata(book, jwk) as OAuthClientMetadataInput,
      keyset: [yield* Effect.promise(() => JoseKey.fromImportable(JSON.stringify(own)))],
    }
  }).pipe(Effect.catch(({ message }) => Effect.fail(new PlatformUnreachable({ message }))))

  const client: Network["client"] = (library, stores) =>
    Effect.map(
      identity,
      (identity) =>
        new NodeOAuthClient({
          ...identity,
          fetch: library.fetch,
          allowHttp: development,
          plcDirectoryUrl: configured.plc,
          handleResolver: configured.handles ?? new AtprotoHandleResolver({ fetch: library.fetch, resolveTxt }),
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
    endpoints: configured,
    client,
    resolve: Effect.fnUntraced(function* (library, account) {
      const { identityResolver } = yield* client(library, emptyStores)
      const found = yield* library.call(() => identityResolver.resolve(account))
      const pds = yield* library.call(async () => extractPdsUrl(found.didDoc))
      if (pds.protocol !== "https:" && !development) {
        return yield* new InputRefused({ message: "The account's server does not use HTTPS.", path: "/account" })
      }
      return { did: found.did, handle: found.handle, pds }
    }),
  }
}

/** The stores of a client that only resolves accounts. */
const emptyStores: Stores = {
  states: { get: () => undefined, set: () => {}, del: () => {} },
  sessions: { get: () => undefined, set: () => {}, del: () => {} },
  nonces: memoryNonces(),
  lock: (_, run) => run(),
}

/** Looks up `_atproto.<handle>` in DNS. */
export const resolveTxt = async (name: string): Promise<Array<string> | null> => {
  const dns = new Resolver({ timeout: 2_000, tries: 2 })
  try {
    return (await dns.resolveTxt(name)).slice(0, 100).map((chunks) => chunks.join(""))
  } catch {
    // The library also requests the handle's host.
    return null
  }
}
