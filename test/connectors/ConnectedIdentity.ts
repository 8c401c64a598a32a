/** Identities that are connected to accounts of the tests' own Mastodon server, on actors in memory. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import { Timing } from "@svc/cluster/Timing"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"
import { makeIdentity } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, makeOrg, rows } from "../harness/Stores.ts"
import { type MastodonServer, startServer } from "./mastodon/Server.ts"
import type { ServerOptions } from "./mastodon/Settings.ts"
import type { Account } from "./mastodon/World.ts"

/** Starts a server that stops with the test. */
export const mastodonServer = (options: ServerOptions = {}) =>
  Effect.acquireRelease(
    Effect.promise(() => startServer(options)),
    (server) => Effect.promise(server.stop),
  )

export const connectors = Effect.fnUntraced(function* (handle: string, platform = "mastodon") {
  return (yield* Connectors).of(handle, platform)
})

/** Connects an account through OAuth; the account holder allows it. */
export const connect = Effect.fnUntraced(function* (
  server: MastodonServer,
  handle: string,
  org_id: string,
  account: Account,
  apply_disclosure = false,
) {
  const actor = yield* connectors(handle)
  const start = yield* ask(actor.Authorize({ org_id, account: server.base }), Timing.askPlatform)
  const query = new URL(server.allow(start.authorization_url, account)).search.slice(1)
  yield* ask(
    actor.Finish({ org_id, state: start.state, query, apply_disclosure }, onBehalfOf(accountHolder)),
    Timing.askPlatform,
  )
  return start
})

/** Creates an Org with an Identity whose account, named `bot` and the stem of its Handle, is connected. */
export const connectedIdentity = Effect.fnUntraced(function* (
  server: MastodonServer,
  stem: string,
  apply_disclosure = false,
) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const { id } = yield* makeIdentity(org_id, handle)
  const bot = server.world.join(`bot${stem}`, "I compute.")
  yield* connect(server, handle, org_id, bot, apply_disclosure)
  return { org_id, id, handle, bot, actor: yield* connectors(handle) }
})

export interface ConnectorRow {
  readonly status: string
  readonly account: string
  readonly account_id: string
  readonly service: string
  readonly disclosed: boolean
  readonly capabilities: ReadonlyArray<string>
  readonly polled_at: Date | null
  readonly last_error: string | null
  readonly poll_due_at: Date | null
  readonly poll_wait_millis: number
  readonly check_due_at: Date | null
  readonly mark: string | null
  readonly updated_at: Date
}

export const rowOf = (identity: string) =>
  Effect.map(
    rows<ConnectorRow>((sql) => sql`select * from connector where identity_id = ${identity}`),
    ([row]) => row,
  )

export const eventsOf = (identity: string, like = "connector.%") =>
  rows<{ type: string; data: any }>(
    (sql) => sql`select type, data from event where identity_id = ${identity} and type like ${like} order by seq`,
  )

export const newPost = (post: {
  readonly text: string
  readonly reply_to?: string
  readonly to?: string
  readonly options?: Record<string, Record<string, unknown>>
}) =>
  Effect.map(makeUuidV7, (command_id) => ({
    command_id,
    text: post.text,
    reply_to: post.reply_to ?? null,
    to: post.to ?? null,
    options: post.options ?? {},
  }))
