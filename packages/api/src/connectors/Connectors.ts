/** The Connector endpoints. Calls to platforms go through the Connector's actor, reads go to the store. */
import { Caller, Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { Api } from "@svc/domain/Api"
import { Connector, type PlatformName } from "@svc/domain/connectors/Connector"
import { ConnectorList } from "@svc/domain/connectors/ConnectorApi"
import { platformNames } from "@svc/domain/connectors/PlatformNames"
import { ConnectorStateInvalid, InvalidCursor } from "@svc/domain/problems/Problem"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect } from "effect"
import * as ActorCalls from "../account/ActorCalls.ts"
import { unchanged } from "../EntityTags.ts"
import { commandId, unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"
import * as AuthorizationReturn from "./AuthorizationReturn.ts"

type Options = Readonly<Record<string, Readonly<Record<string, unknown>>>>

const asRead = unchanged(Connector)
const asListed = unchanged(ConnectorList)

export const layer = RequestServices.group(
  Api,
  "connectors",
  Effect.fn(function* (handlers) {
    const askConnector = yield* ActorCalls.ofConnector
    const connectors = yield* ConnectorQueries
    const sealing = yield* Sealing
    const finish = yield* AuthorizationReturn.make

    const of = (subject: SubjectInfo, platform: PlatformName) => ({
      canonical: subject.canonical,
      platform,
      by: subject.by,
    })

    /** Seals the platform's cursor together with the list to which it belongs. */
    const listOf = (subject: SubjectInfo, platform: PlatformName, list: string) =>
      `list/connectors/${subject.id}/${platform}/${list}`
    const unstamped = (list: string, cursor: string | undefined) => {
      if (cursor === undefined) return Effect.succeed(null)
      const place = sealing.unstamp(list, cursor)
      return place === undefined
        ? Effect.fail(new InvalidCursor({ detail: "The cursor was not issued by this service for this list." }))
        : Effect.succeed(place)
    }
    const stamped = (list: string, cursor: string | null) => (cursor === null ? null : sealing.stamp(list, cursor))

    const posts = Effect.fnUntraced(function* (
      list: "posts" | "dms",
      platform: PlatformName,
      query: { readonly limit: number; readonly cursor?: string },
    ) {
      const subject = yield* Subject
      const name = listOf(subject, platform, list)
      const cursor = yield* unstamped(name, query.cursor)
      const page = yield* askConnector(of(subject, platform), (actor, by) =>
        actor.ReadPosts({ org_id: subject.orgId, of: list, limit: query.limit, cursor }, by),
      )
      return { posts: page.entries, cursor: stamped(name, page.cursor) }
    })

    const publish = Effect.fnUntraced(function* (
      platform: PlatformName,
      post: {
        readonly text: string
        readonly to?: string
        readonly reply_to?: string | null
        readonly options?: Options
      },
    ) {
      const subject = yield* Subject
      const command_id = yield* commandId
      const { text, to = null, reply_to = null, options = {} } = post
      return yield* askConnector(of(subject, platform), (actor, by) =>
        actor.Publish({ org_id: subject.orgId, command_id, text, to, reply_to, options }, by),
      )
    })

    return handlers.handleAll({
      list: () => Effect.flatMap(Subject, ({ id }) => connectors.list(id)),
      pauseAll: Effect.fnUntraced(function* ({ payload, headers }) {
        const subject = yield* Subject
        yield* asListed(headers["if-match"], connectors.list(subject.id))
        // Each Connector actor limits its own calls, including those of later connections.
        yield* unlessMade(
          Effect.forEach(
            platformNames,
            (platform) =>
              askConnector(of(subject, platform), (actor, by) =>
                actor.Pause({ org_id: subject.orgId, paused: payload.paused, everyone: true }, by),
              ).pipe(Effect.catchTag("connector_paused", Effect.die)),
            { concurrency: "unbounded" },
          ),
        )
        return yield* connectors.list(subject.id)
      }),
      read: ({ params }) => Effect.flatMap(Subject, ({ id }) => connectors.read(id, params.platform)),
      pause: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const subject = yield* Subject
        const read = connectors.read(subject.id, params.platform)
        yield* asRead(headers["if-match"], read)
        yield* unlessMade(
          askConnector(of(subject, params.platform), (actor, by) =>
            actor.Pause({ org_id: subject.orgId, paused: payload.paused, everyone: false }, by),
          ),
        )
        return yield* read
      }),
      connect: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const subject = yield* Subject
        const read = connectors.read(subject.id, params.platform)
        yield* asRead(headers["if-match"], read)
        yield* unlessMade(
          askConnector(of(subject, params.platform), (actor, by) =>
            actor.Login(
              {
                org_id: subject.orgId,
                account: payload.account,
                password: payload.app_password,
                apply_disclosure: payload.apply_disclosure,
              },
              by,
            ),
          ),
        )
        return yield* read
      }),
      disconnect: Effect.fnUntraced(function* ({ params, headers }) {
        const subject = yield* Subject
        yield* asRead(headers["if-match"], connectors.read(subject.id, params.platform))
        yield* unlessMade(
          askConnector(of(subject, params.platform), (actor, by) => actor.Disconnect({ org_id: subject.orgId }, by)),
        )
      }),
      authorize: Effect.fnUntraced(function* ({ params, payload }) {
        const subject = yield* Subject
        return yield* askConnector(of(subject, params.platform), (actor, by) =>
          actor.Authorize({ org_id: subject.orgId, ...payload }, by),
        )
      }),
      callback: Effect.fnUntraced(function* ({ payload }) {
        const caller = yield* Caller
        const query = AuthorizationReturn.queryOf(payload.callback)
        if (query === undefined) {
          return yield* new ConnectorStateInvalid({ detail: "The address contains no state." })
        }
        return yield* finish(caller, query, payload.apply_disclosure)
      }),
      posts: ({ params, query }) => posts("posts", params.platform, query),
      post: ({ params, payload }) => publish(params.platform, payload),
      dms: ({ params, query }) => posts("dms", params.platform, query),
      dm: ({ params, payload }) => publish(params.platform, payload),
      thread: Effect.fnUntraced(function* ({ params, query }) {
        const subject = yield* Subject
        const page = yield* askConnector(of(subject, params.platform), (actor, by) =>
          actor.ReadThread({ org_id: subject.orgId, uri: query.uri }, by),
        )
        return { posts: page.entries, cursor: null }
      }),
      notifications: Effect.fnUntraced(function* ({ params, query }) {
        const subject = yield* Subject
        const name = listOf(subject, params.platform, "notifications")
        const cursor = yield* unstamped(name, query.cursor)
        const page = yield* askConnector(of(subject, params.platform), (actor, by) =>
          actor.ReadNotifications({ org_id: subject.orgId, limit: query.limit, cursor }, by),
        )
        return { notifications: page.entries, cursor: stamped(name, page.cursor) }
      }),
    })
  }),
)
