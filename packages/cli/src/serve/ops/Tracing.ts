/**
 * Traces by OTLP, when `OTEL_EXPORTER_OTLP_ENDPOINT` says where to. A trace is taken or left at its root: one in a hundred,
 * or as `OTEL_TRACES_SAMPLER_ARG` says; what is below follows its parent, in whichever process it is. Whether a caller's
 * trace is taken is for the caller to say only where it is a trusted proxy: strangers get their trace id carried on, and
 * our own decision. What leaves passes the redaction of logs; statements are told by their kind, clients not at all.
 */
import type { Server } from "node:http"
import { isWithin, type Networks } from "@svc/cluster/net/ClientNetwork"
import * as Redaction from "@svc/cluster/observe/Redaction"
import { TracesLeave } from "@svc/cluster/observe/Traceparent"
import { apiVersion } from "@svc/domain/Version"
import { ConfigProvider, Effect, Layer, Option, References, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"

/** Attributes that say who came, or what they asked for. */
const left = new Set(["client.address", "user_agent.original", "url.query", "url.full"])

const statement = /^\s*(?:with\b[\s\S]*?\)\s*)?(select|insert|update|delete|copy|begin|commit|listen|notify)/i

const attribute = (name: string, value: unknown): readonly [string, unknown] | undefined => {
  if (left.has(name)) return undefined
  if (name === "db.query.text")
    return ["db.operation.name", statement.exec(String(value))?.[1]?.toLowerCase() ?? "other"]
  return [name, Redaction.of(name, value)]
}

/** Lets nothing secret into a span. */
const redacting = (span: Tracer.Span): Tracer.Span => {
  const [put, tell] = [span.attribute.bind(span), span.event.bind(span)]
  span.attribute = (name, value) => {
    const told = attribute(name, value)
    if (told !== undefined) put(...told)
  }
  span.event = (name, startTime, attributes) =>
    tell(
      name,
      startTime,
      attributes === undefined ? undefined : (Redaction.of("", attributes) as Record<string, unknown>),
    )
  return span
}

/** Decides at the root, follows the parent below it. */
export const sampling = (inner: Tracer.Tracer, rate: number, random: () => number = Math.random): Tracer.Tracer =>
  Tracer.make({
    ...(inner.context === undefined ? {} : { context: inner.context }),
    span: (options) => {
      const sampled = options.sampled && (Option.isSome(options.parent) || random() < rate)
      const span = inner.span({ ...options, sampled })
      return sampled ? redacting(span) : span
    },
  })

const isWanted = (process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? "") !== ""

/** The tracer of the process. Where none is wanted no span is made: the library's own would make all of them, for nobody. */
export const layer = (roles: ReadonlyArray<string>, rate: number) =>
  isWanted
    ? Layer.merge(
        Layer.effect(
          Tracer.Tracer,
          Effect.map(Tracer.Tracer, (inner) => sampling(inner, rate)),
        ),
        Layer.succeed(TracesLeave, true),
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
        // The library exports only when it is told to twice.
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
/** Other ways to say the same (B3), which would say it past us. */
const others = ["b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags"]

/** The header of a trace as it is taken over: whether a stranger's trace is taken is decided here. */
export const takenOver = (given: string | undefined, isTaken: boolean): string | undefined =>
  given !== undefined && traceparent.test(given) ? `${given.slice(0, -2)}${isTaken ? "01" : "00"}` : undefined

/** Requests of strangers carry their trace on, and no more. */
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
