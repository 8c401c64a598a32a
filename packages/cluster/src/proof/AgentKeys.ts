/**
 * The keys of agents by their origin, with which their signatures are verified: of Identities of this service from the
 * store, of others from the directory at their origin (Web Bot Auth). The origin is untrusted, so its directory is read
 * with the guarded client, and the number of reads in progress is limited for each reader and in all.
 */
import { createPublicKey, type KeyObject } from "node:crypto"
import { Addresses, tunnelUrl } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"
import { Clock, Context, Effect, Fiber, Layer, Schema } from "effect"
import { freshFor, jsonOf } from "../net/BufferedResponse.ts"
import { GuardedClient } from "../net/GuardedClient.ts"
import { unrestricted } from "../net/SendPermission.ts"
import { Timing } from "../Timing.ts"
import { jose } from "./Libraries.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { directoryPath, directoryType } from "./WebBotAuth.ts"

/** Maximum size of a directory in bytes, and of its list of keys. */
const directoryBytes = 5 * 1024
const keysAtMost = 20

const originsAtMost = 10_000
/** Directories that are read at the same time: for one reader, such as a Tunnel, and in all. */
const reads = { perReader: 8, inAll: 64 }

/** The keys of an origin cannot be read. */
export class KeysUnreadable extends Schema.TaggedError<KeysUnreadable>()("KeysUnreadable", {
  message: Schema.String,
  /** Whether too many other directories are being read, so that another attempt may succeed. */
  isBusy: Schema.Boolean,
}) {}

export interface AgentKeySet {
  /** The Handle, if the agent is an Identity of this service. */
  readonly handle: string | undefined
  /** Public Ed25519 keys by thumbprint (RFC 7638). */
  readonly keys: ReadonlyMap<string, KeyObject>
}

interface Known {
  readonly found: AgentKeySet | KeysUnreadable
  readonly readAt: number
  readonly until: number
}

const unreadable = (message: string, isBusy = false) => new KeysUnreadable({ message, isBusy })

const Directory = Schema.Struct({ keys: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })
const decode = Schema.decodeUnknownOption(Directory)

/** Returns the Ed25519 keys by thumbprint. Other keys are skipped. */
const keysOf = Effect.fnUntraced(function* (jwks: ReadonlyArray<Readonly<Record<string, unknown>>>) {
  const { calculateJwkThumbprint } = yield* Effect.promise(jose)
  const keys = new Map<string, KeyObject>()
  for (const { kty, crv, x } of jwks.slice(0, keysAtMost)) {
    if (kty !== "OKP" || crv !== "Ed25519" || typeof x !== "string") continue
    const jwk = { kty, crv, x }
    yield* Effect.ignore(
      Effect.tryPromise(async () =>
        keys.set(await calculateJwkThumbprint(jwk), createPublicKey({ key: jwk, format: "jwk" })),
      ),
    )
  }
  return keys
})

const make = Effect.gen(function* () {
  const book = yield* Addresses
  const client = yield* GuardedClient
  const signingKeys = yield* SigningKeys
  const scope = yield* Effect.scope
  const known = new Map<string, Known>()
  const reading = new Map<string, Fiber.Fiber<AgentKeySet, KeysUnreadable>>()
  const readers = new Map<string, number>()
  const ourSuffix = `.${book.tunnelDomain.toLowerCase()}`

  const ours = Effect.fnUntraced(function* (origin: string, name: string) {
    const published = yield* Effect.mapError(signingKeys.published(canonical(name)), () =>
      unreadable("The keys could not be read.", true),
    )
    if (published === undefined || new URL(tunnelUrl(book, published.handle)).origin !== origin) return undefined
    const since = (yield* Clock.currentTimeMillis) - Timing.directoryOverlapMillis
    const listed = published.keys.filter(
      (key) => key.origin === "service" && (key.retired_at === null || key.retired_at.getTime() > since),
    )
    return { handle: published.handle, keys: yield* keysOf(listed.map(({ jwk }) => ({ ...jwk }))) }
  })

  const theirs = Effect.fnUntraced(function* (origin: string) {
    const answer = yield* client
      .ask(
        new URL(directoryPath, origin),
        { method: "GET", headers: { accept: directoryType }, atMost: directoryBytes },
        unrestricted,
      )
      .pipe(
        Effect.timeoutOrElse({
          duration: Timing.documentTimeoutMillis,
          orElse: () => Effect.fail(unreadable("The directory of keys did not respond in time.")),
        }),
        Effect.catchTag("RequestFailed", ({ error }) =>
          Effect.fail(unreadable(`The directory of keys cannot be read (${error}).`)),
        ),
      )
    const json = answer.status === 200 ? decode(jsonOf(answer)) : undefined
    if (json?._tag !== "Some") {
      return yield* unreadable(`The origin has no directory of keys (status ${answer.status}).`)
    }
    const found: AgentKeySet = { handle: undefined, keys: yield* keysOf(json.value.keys) }
    return { found, freshMillis: freshFor(answer.headers, Timing.agentKeysFreshMillis) }
  })

  const keep = (origin: string, entry: Known) => {
    known.delete(origin)
    known.set(origin, entry)
    for (const oldest of known.keys()) {
      if (known.size <= originsAtMost) break
      known.delete(oldest)
    }
  }

  const read = Effect.fnUntraced(
    function* (origin: string) {
      const { hostname } = new URL(origin)
      const own = hostname.endsWith(ourSuffix) ? yield* ours(origin, hostname.slice(0, -ourSuffix.length)) : undefined
      return own === undefined ? yield* theirs(origin) : { found: own, freshMillis: Timing.ownKeysFreshMillis }
    },
    (effect, origin) =>
      Effect.flatMap(Clock.currentTimeMillis, (readAt) =>
        effect.pipe(
          Effect.map(({ found, freshMillis }) => {
            keep(origin, { found, readAt, until: readAt + freshMillis })
            return found
          }),
          Effect.tapError((failure) =>
            Effect.sync(() => {
              if (!failure.isBusy)
                keep(origin, { found: failure, readAt, until: readAt + Timing.agentKeysFailedMillis })
            }),
          ),
          Effect.ensuring(Effect.sync(() => reading.delete(origin))),
        ),
      ),
  )

  /** Joins a read in progress, or starts one if the limits allow it. */
  const load = Effect.fnUntraced(function* (origin: string, reader: string) {
    const present = reading.get(origin)
    if (present !== undefined) return yield* Fiber.join(present)
    const mine = readers.get(reader) ?? 0
    if (reading.size >= reads.inAll || mine >= reads.perReader) {
      return yield* unreadable("Too many directories of keys are being read at the moment.", true)
    }
    readers.set(reader, mine + 1)
    const released = Effect.sync(() => {
      const left = (readers.get(reader) ?? 1) - 1
      if (left > 0) readers.set(reader, left)
      else readers.delete(reader)
    })
    const fiber = yield* Effect.forkIn(Effect.ensuring(read(origin), released), scope)
    reading.set(origin, fiber)
    return yield* Fiber.join(fiber)
  })

  return {
    /** Returns the cached key of an origin, without waiting; undefined if it has to be read. */
    cached: (origin: string, kid: string, now: number): { key: KeyObject; handle: string | undefined } | undefined => {
      const entry = known.get(origin)
      if (entry === undefined || entry.until <= now || "message" in entry.found) return undefined
      const key = entry.found.keys.get(kid)
      return key === undefined ? undefined : { key, handle: entry.found.handle }
    },

    /**
     * Returns the keys of an origin, which contain `kid` if the origin has it. An unknown key may be newer than the
     * cached ones, so they are read again, at most once a second.
     */
    find: Effect.fn("AgentKeys.find")(function* (origin: string, kid: string, reader: string) {
      const now = yield* Clock.currentTimeMillis
      const entry = known.get(origin)
      if (entry !== undefined && entry.until > now) {
        if ("message" in entry.found) return yield* entry.found
        if (entry.found.keys.has(kid)) return entry.found
        const wait = entry.readAt + Timing.agentKeysAgainMillis - now
        if (wait > 0) yield* Effect.sleep(wait)
      }
      return yield* load(origin, reader)
    }),
  }
})

export class AgentKeys extends Context.Service<AgentKeys, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/AgentKeys",
) {
  static readonly layer = Layer.effect(AgentKeys, make).pipe(Layer.provide(SigningKeys.layer))
}
