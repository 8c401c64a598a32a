/** The header by which what we call can be joined to a trace of ours (W3C Trace Context); none where it is not taken. */
import { Context, Effect, type Tracer } from "effect"

/** Whether traces of this process go anywhere: otherwise nobody could look one up. */
export const TracesLeave = Context.Reference<boolean>("@svc/cluster/observe/TracesLeave", {
  defaultValue: () => false,
})

export const headerOf = (span: Tracer.AnySpan): Record<string, string> =>
  span.sampled ? { traceparent: `00-${span.traceId}-${span.spanId}-01` } : {}

/** Of the span at hand. */
export const traceparent: Effect.Effect<Record<string, string>> = Effect.gen(function* () {
  if (!(yield* TracesLeave)) return {}
  const span = yield* Effect.option(Effect.currentParentSpan)
  return span._tag === "None" ? {} : headerOf(span.value)
})
