/** The endpoints of the audit log. */
import { Api } from "@svc/domain/Api"
import { Caller, Realm } from "@svc/domain/account/Authorization"
import { AuditQueries } from "@svc/cluster/audit/AuditQueries"
import { Clock, Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import * as Downloads from "../http/Downloads.ts"
import * as RequestServices from "../http/RequestServices.ts"

const dayMillis = 86_400_000
const encoder = new TextEncoder()

export const layer = RequestServices.group(
  Api,
  "audit",
  Effect.fn(function* (handlers) {
    const audit = yield* AuditQueries
    const whileValid = yield* Downloads.make
    /** The log of the whole account, or of one Identity. */
    const within = Effect.map(Realm, ({ orgId, subject }) => [orgId, subject?.id ?? null] as const)

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        return yield* audit.list(...(yield* within), query)
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        return yield* audit.read(...(yield* within), params.id)
      }),
      usage: Effect.fnUntraced(function* ({ query }) {
        const since = query.since ?? new Date((yield* Clock.currentTimeMillis) - dayMillis)
        return { usage: yield* audit.usage((yield* Caller).org.id, since, query.limit) }
      }),
      head: Effect.fnUntraced(function* () {
        return yield* audit.head((yield* Caller).org.id)
      }),
      export: Effect.fnUntraced(function* ({ query: { since, until } }) {
        const org = (yield* Caller).org.id
        // The position is read first; the download contains at least the entries up to it.
        const end = yield* audit.head(org)
        const first = `${JSON.stringify({ ...end, since: since ?? null, until: until ?? null })}\n`
        const lines = Stream.concat(Stream.succeed(first), audit.sealedLines(org, since, until))
        const body = yield* whileValid(Stream.orDie(Stream.map(lines, (line) => encoder.encode(line))))
        return HttpServerResponse.stream(body, {
          contentType: "application/jsonl",
          headers: { "content-disposition": `attachment; filename="audit.jsonl"` },
        })
      }),
    })
  }),
)
