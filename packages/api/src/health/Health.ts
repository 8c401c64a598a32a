import { Api } from "@svc/domain/Api"
import { Health } from "@svc/cluster/health/Health"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import * as RequestServices from "../http/RequestServices.ts"

export const layer = RequestServices.group(
  Api,
  "health",
  Effect.fn(function* (handlers) {
    const health = yield* Health
    return handlers.handle("report", () =>
      Effect.map(health.report, (report) =>
        HttpServerResponse.jsonUnsafe(report, {
          status: report.status === "fail" ? 503 : 200,
          headers: { "cache-control": "no-store" },
        }),
      ),
    )
  }),
)
