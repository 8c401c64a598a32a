/** Stores and queries of the service without actors, over a private database. */
import { Accounts } from "@svc/cluster/account/Accounts"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Devices } from "@svc/cluster/account/Devices"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import * as Subscribers from "@svc/cluster/feed/Subscribers"
import { IdempotencyRecords } from "@svc/cluster/idempotency/IdempotencyRecords"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import { Reads, Writes } from "@svc/cluster/store/Database"
import * as Shared from "@svc/cli/serve/roles/Stores"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import type { Initiator } from "@svc/domain/account/Initiator"
import { Addresses } from "@svc/domain/Addresses"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import { TestClock } from "effect/testing"
import { databaseLayer } from "./Database.ts"

const masterKey = Buffer.alloc(32, 7).toString("base64")

export const sealingLayer = Layer.unwrap(Effect.map(Effect.orDie(parseMasterKeys(masterKey)), Sealing.layer))

/** Sets the test's clock to the database's clock, by which some ages are computed. Test layers start with it. */
export const setClockToNow = Effect.suspend(() => TestClock.setTime(Date.now()))

export const addresses = Layer.succeed(Addresses, {
  environment: "development",
  baseUrl: "http://localhost:8080",
  profileBase: "http://localhost:8080",
  mailDomain: "mail.localhost",
  tunnelDomain: "tunnel.localhost",
  tunnelScheme: "http",
  tunnelPort: 8081,
  mcpOrigins: [],
  imap: { host: "localhost", port: 1143, security: "starttls" },
  submission: { host: "localhost", port: 1587, security: "starttls" },
})

/** A change feed that only notifies on request and finds no changes itself. */
export const quietFeed = Layer.sync(ChangeFeed, () => {
  const { subscribe, on, follow, wake } = Subscribers.make()
  return {
    subscribe,
    on,
    follow,
    notify: wake,
    changed: (org, { resource, handle }) => wake(`${org}/${resource}:${handle ?? ""}`),
    resources: () => Effect.succeed({ recent: [], await: Effect.never }),
    announce: ({ org, identity }) => {
      wake(org)
      if (identity !== undefined) wake(identity)
    },
  }
})

/** Services that stores and actors share. */
export const foundation = Layer.mergeAll(sealingLayer, addresses, quietFeed, UsageCounters.layer).pipe(
  Layer.provideMerge(databaseLayer),
  Layer.provideMerge(Layer.effectDiscard(setClockToNow)),
)

const settings = {
  registration: "open",
  inviteCodes: new Set<string>(),
  tosVersion: "1",
  tosEffectiveAt: null,
} as const

export const inProcess = Layer.mergeAll(
  Accounts.layer(settings),
  CredentialLookup.layer,
  Devices.layer,
  IdempotencyRecords.layer,
  Shared.layer,
)

/** Stores for tests without actors. */
export const storesLayer = inProcess.pipe(Layer.provideMerge(foundation), Layer.orDie)

/** The session of {@link accountHolder}, and the Org to which it belongs. */
const [holderSession, holderOrg] = [
  "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99",
  "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a00",
] as const

/** The account holder as the initiator of changes. {@link makeOrg} stores the session. */
export const accountHolder: Initiator = { kind: "session", credentialId: holderSession, requestId: "req_1" }

const insertOrg = Effect.fnUntraced(function* (id: string) {
  const sql = yield* Writes
  const { sealed } = yield* (yield* Sealing).makeDataKey(id)
  yield* sql`
    insert into org (id, email, language, tos_version, tos_accepted_at, data_key, created_at)
    values (${id}, ${`${id}@example.org`}, 'en', '1', now(), ${sealed}, now()) on conflict do nothing`
})

export const makeOrg = Effect.gen(function* () {
  const sql = yield* Writes
  const id = yield* makeUuidV7
  yield* insertOrg(id)
  yield* insertOrg(holderOrg)
  yield* sql`
    insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${holderSession}, ${holderOrg}, ${Buffer.from(holderSession)}, now(), now(), '9999-01-01') on conflict do nothing`
  return id
})

/** Queries the store for state that the interface does not show. */
export const rows = <A extends object>(statement: (sql: Reads["Service"]) => Statement.Statement<A>) =>
  Effect.orDie(Effect.flatMap(Reads, statement))
