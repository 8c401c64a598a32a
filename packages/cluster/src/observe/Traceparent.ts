/** The `traceparent` header (W3C Trace Context), which joins a called service's spans to the trace of the caller. */
import { Context, Effect, type Tracer } from "effect"

/** Whether this process exports traces. The header would be useless otherwise. */
export const TracesExported = Context.Reference<boolean>("@svc/cluster/observe/TracesExported", {
  defaultValue: () => false,
})

const headerOf = (span: Tracer.AnySpan): Record<string, string> =>
  span.sampled ? { traceparent: `00-${span.traceId}-${span.spanId}-01` } : {}

/** Returns the header for the current span, or no header if traces are not exported. */
export const traceparent: Effect.Effect<Record<string, string>> = Effect.gen(function* () {
  if (!(yield* TracesExported)) return {}
  const span = yield* Effect.option(Effect.currentParentSpan)
  return span._tag === "None" ? {} : headerOf(span.value)
})
