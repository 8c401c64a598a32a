/**
 * Exports traces by OTLP if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Sampling is decided at the root of a trace: one in a
 * hundred, or the rate of `OTEL_TRACES_SAMPLER_ARG`; all spans below follow their parent, in every process. Only
 * trusted proxies may request sampling; for other clients the trace id is continued and the service decides. Exported
 * spans are redacted like logs: they contain the kind of a statement and nothing about clients.
 */
import type { Server } from "node:http"
import { isWithin, type Networks } from "@svc/cluster/net/ClientNetwork"
import * as Redaction from "@svc/cluster/observe/Redaction"
import { TracesExported } from "@svc/cluster/observe/Traceparent"
import { apiVersion } from "@svc/domain/Version"
import { ConfigProvider, Effect, Layer, Option, References, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"

/** Attributes that identify clients or their requests. */
const left = new Set(["client.address", "user_agent.original", "url.query", "url.full"])

const statement = /^\s*(?:with\b[\s\S]*?\)\s*)?(select|insert|update|delete|copy|begin|commit|listen|notify)/i

const attribute = (name: string, value: unknown): readonly [string, unknown] | undefined => {
  if (left.has(name)) return undefined
  if (name === "db.query.text")
    return ["db.operation.name", statement.exec(String(value))?.[1]?.toLowerCase() ?? "other"]
  return [name, Redaction.of(name, value)]
}

/** Redacts the attributes of a span. */
const redacting = (span: Tracer.Span): Tracer.Span => {
  const [put, tell] = [span.attribute.bind(span), span.event.bind(span)]
  span.attribute = (name, value) => {
    const redacted = attribute(name, value)
    if (redacted !== undefined) put(...redacted)
  }
  span.event = (name, startTime, attributes) =>
    tell(
      name,
      startTime,
      attributes === undefined ? undefined : (Redaction.of("", attributes) as Record<string, unknown>),
    )
  return span
}

/** Samples at the root and follows the parent below it. */
export const sampling = (inner: Tracer.Tracer, rate: number, random: () => number = Math.random): Tracer.Tracer =>
  Tracer.make({
    ...(inner.context === undefined ? {} : { context: inner.context }),
    span: (options) => {
      const sampled = options.sampled && (Option.isSome(options.parent) || random() < rate)
      const span = inner.span({ ...options, sampled })
      return sampled ? redacting(span) : span
    },
  })

/**
 * The tracer of the process. Without an endpoint no spans are created; the library's tracer would create all of them.
 */
export const layer = (roles: ReadonlyArray<string>, rate: number) =>
  (process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? "") !== ""
    ? Layer.merge(
        Layer.effect(
          Tracer.Tracer,
          Effect.map(Tracer.Tracer, (inner) => sampling(inner, rate)),
        ),
        Layer.succeed(TracesExported, true),
      ).pipe(
        Layer.provide(
          OtlpTracer.layerFromConfig({
            resource: {
              serviceName: process.env["OTEL_SERVICE_NAME"] ?? "svc",
              serviceVersion: apiVersion,
              attributes: { "svc.role": roles.join(",") },
            },
          }),
        ),
        Layer.provide([FetchHttpClient.layer, OtlpSerialization.layerJson]),
        // The library exports only if both settings enable it.
        Layer.provide(
          ConfigProvider.layer(
            ConfigProvider.orElse(
              ConfigProvider.fromEnv(),
              ConfigProvider.fromUnknown({ OTEL_TRACES_EXPORTER: "otlp" }),
            ),
          ),
        ),
      )
    : Layer.succeed(References.TracerEnabled, false)

const traceparent = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
/** Headers of other trace formats (B3), which would bypass the check. */
const others = ["b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags"]

/** Returns the trace header to accept. The service decides whether a foreign trace is sampled. */
export const takenOver = (given: string | undefined, isTaken: boolean): string | undefined =>
  given !== undefined && traceparent.test(given) ? `${given.slice(0, -2)}${isTaken ? "01" : "00"}` : undefined

/** Continues the trace of foreign requests without their sampling decision. */
export const guarded = (server: Server, trusted: Networks, rate: number): Server =>
  server.prependListener("request", (request) => {
    const { headers, socket } = request
    if (headers.traceparent === undefined && headers["b3"] === undefined && headers["x-b3-traceid"] === undefined)
      return
    if (isWithin(trusted, socket.remoteAddress)) return
    for (const name of others) delete headers[name]
    const own =
      typeof headers.traceparent === "string" ? takenOver(headers.traceparent, Math.random() < rate) : undefined
    if (own === undefined) delete headers.traceparent
    else headers.traceparent = own
  })
