/** The health report, with one entry for each part that the process depends on (decisions.md "Health"). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { open } from "../account/Policy.ts"

export const HealthStatus = Schema.Literals(["pass", "warn", "fail"])
export type HealthStatus = typeof HealthStatus.Type

export const HealthComponent = Schema.Struct({
  name: Schema.String,
  status: HealthStatus,
  essential: Schema.Boolean,
  latency_ms: Schema.NullOr(Schema.Finite),
  detail: Schema.NullOr(Schema.String),
}).annotate({ identifier: "HealthComponent" })
export type HealthComponent = typeof HealthComponent.Type

export const HealthReport = Schema.Struct({
  status: HealthStatus,
  version: Schema.String,
  components: Schema.Array(HealthComponent),
}).annotate({ identifier: "HealthReport" })
export type HealthReport = typeof HealthReport.Type

export class HealthApi extends HttpApiGroup.make("health")
  .add(
    HttpApiEndpoint.get("report", "/api/healthz", {
      success: [
        HealthReport,
        HealthReport.annotate({ description: "An essential component is unhealthy" }).pipe(HttpApiSchema.status(503)),
      ],
    })
      .pipe(open)
      .annotate(OpenApi.Summary, "Report whether the service and its components are healthy"),
  )
  .annotate(OpenApi.Description, "Health of the service.") {}
