/** Runs a platform as the actor of a Connector does, with the actor's rows in memory: sessions, their lock and their stored state. */
import { generateKeyPairSync, createPublicKey } from "node:crypto"
import { make as makeBluesky } from "@svc/cluster/connectors/platforms/bluesky/Platform"
import { Halted, type PlatformFailure } from "@svc/cluster/connectors/platforms/Failure"
import type {
  Connected,
  Credential,
  Platform,
  Session,
  PlatformContext,
} from "@svc/cluster/connectors/platforms/Platform"
import * as PlatformHttp from "@svc/cluster/connectors/platforms/PlatformHttp"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { unrestricted } from "@svc/cluster/net/SendPermission"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import type { AddressBook } from "@svc/domain/Addresses"
import { Effect, Exit, Layer, Redacted, Scope, Semaphore } from "effect"
import type { Network } from "./Network.ts"

/** The rows of a Connector. */
export interface Rows {
  credential: Credential
  readonly kept: Map<string, string>
  /** Number of times the lock was acquired, and number of times a credential was stored. */
  locked: number
  keeps: number
  paused: boolean
}

export interface Rig {
  readonly platform: Platform
  readonly visit: PlatformContext
  readonly key: { readonly kid: string }
  /** Creates the rows of a new connection. Several sessions over the same rows act like several processes. */
  readonly rows: (connected: Connected) => Rows
  readonly session: (connected: Connected, rows: Rows) => Session
  readonly run: <A>(effect: Effect.Effect<A, PlatformFailure>) => Promise<A>
  readonly failure: (effect: Effect.Effect<unknown, PlatformFailure>) => Promise<PlatformFailure>
  readonly connect: (
    account: string,
    password: string,
  ) => Promise<{ connected: Connected; rows: Rows; session: Session }>
  readonly close: () => Promise<void>
}

export const disclosure = "This account is run by an automated agent."

export const openRig = async (
  { plc, pds, chat }: Pick<Network, "plc" | "pds" | "chat">,
  {
    baseUrl = "http://localhost:8080",
    timeoutMillis = 15_000,
    environment = "development" as AddressBook["environment"],
  } = {},
): Promise<Rig> => {
  const scope = Scope.makeUnsafe()
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const jwk = { ...createPublicKey(privateKey).export({ format: "jwk" }), kid: "connectors", use: "sig", alg: "ES256" }
  const keys = Layer.succeed(ServiceKey, {
    key: Effect.succeed(privateKey),
    publicJwk: Effect.succeed(jwk),
    ofRecords: Effect.die("not asked for"),
    ofSeals: Effect.die("not asked for"),
  })
  const client = await Effect.runPromise(
    Effect.provide(
      Effect.service(GuardedClient),
      await Effect.runPromise(Layer.buildWithScope(GuardedClient.layer({ allowPrivate: true, timeoutMillis }), scope)),
    ),
  )
  const settings: Record<string, string> = { PLC_URL: plc, HANDLE_RESOLVER: pds, CHAT_DID: chat.did, SERVICE: pds }
  const book: AddressBook = {
    environment,
    baseUrl,
    profileBase: baseUrl,
    mailDomain: "mail.test",
    tunnelDomain: "tunnel.test",
    tunnelScheme: "http",
    tunnelPort: undefined,
    mcpOrigins: [],
    imap: { host: "localhost", port: 143, security: "none" },
    submission: { host: "localhost", port: 587, security: "none" },
  }
  const platform = await Effect.runPromise(
    makeBluesky({ book, disclosure, setting: (name) => settings[name] }).pipe(
      Effect.provide(keys),
      Scope.provide(scope),
    ),
  )

  const registrations: PlatformContext["registrations"] = {
    read: () => Effect.succeed(undefined),
    store: (_, registration) => Effect.succeed(registration),
    forget: () => Effect.void,
  }
  const visit: PlatformContext = { http: PlatformHttp.make(client, unrestricted), registrations }

  const locks = new Map<Rows, Semaphore.Semaphore>()
  const rows = ({ credential }: Connected): Rows => {
    const made: Rows = { credential, kept: new Map(), locked: 0, keeps: 0, paused: false }
    locks.set(made, Semaphore.makeUnsafe(1))
    return made
  }

  const session = ({ account, via }: Connected, held: Rows): Session => ({
    account,
    via,
    registrations,
    http: PlatformHttp.make(client, {
      request: Effect.suspend(() => (held.paused ? Effect.fail(new Halted({ reason: "paused" })) : Effect.void)),
      isPermitted: () => !held.paused,
    }),
    credential: Effect.sync(() => held.credential),
    exclusively: (refresh) =>
      locks.get(held)!.withPermit(
        Effect.andThen(
          Effect.sync(() => held.locked++),
          refresh,
        ),
      ),
    storeCredential: (credential) =>
      Effect.sync(() => {
        held.credential = credential
        held.keeps++
      }),
    notes: {
      read: (name) => Effect.sync(() => held.kept.get(name)),
      write: (name, text) =>
        Effect.sync(() => void (text === undefined ? held.kept.delete(name) : held.kept.set(name, text))),
    },
  })

  const run: Rig["run"] = (effect) => Effect.runPromise(effect)
  return {
    platform,
    visit,
    key: jwk,
    rows,
    session,
    run,
    failure: (effect) => Effect.runPromise(Effect.flip(effect)),
    connect: async (account, password) => {
      const connected = await run(platform.login!(visit, { account, password: Redacted.make(password) }))
      const held = rows(connected)
      return { connected, rows: held, session: session(connected, held) }
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}
