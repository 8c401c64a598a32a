/**
 * Trims the context of messages. For every message, in every process that handles it, the library merges the services of
 * the caller and the actor and copies the result. The cost grows with the number of services, so actors, runners and
 * callers keep only the services that they or the runtime need.
 */
import {
  Clock,
  Console,
  Context,
  Effect,
  ErrorReporter,
  Layer,
  Logger,
  Random,
  References,
  Scheduler,
  Tracer,
} from "effect"
import { TracesExported } from "../observe/Traceparent.ts"

const ambient = [
  Clock.Clock,
  Random.Random,
  Console.Console,
  Logger.CurrentLoggers,
  Logger.LogToStderr,
  References.MinimumLogLevel,
  References.CurrentLogLevel,
  References.UnhandledLogLevel,
  ErrorReporter.CurrentErrorReporters,
  Tracer.Tracer,
  Tracer.CurrentTraceLevel,
  Tracer.MinimumTraceLevel,
  Tracer.DisablePropagation,
  References.TracerEnabled,
  References.TracerTimingEnabled,
  Scheduler.Scheduler,
  Scheduler.MaxOpsBeforeYield,
  Scheduler.PreventSchedulerYield,
  TracesExported,
] as const

/** Returns the services that the runtime reads from every fiber. */
export const ambientOf = (around: Context.Context<never>): Context.Context<never> => Context.pick(...ambient)(around)

/** Builds the layer with only the services that it needs, which `Context.pick` selects. */
export const apart = <A, E, R>(
  layer: Layer.Layer<A, E, R>,
  needs: (around: Context.Context<R>) => Context.Context<NoInfer<R>>,
): Layer.Layer<A, E, R> =>
  Layer.fromBuild((memoMap, scope) =>
    Effect.contextWith((around: Context.Context<R>) =>
      Effect.setContext(
        Layer.buildWithMemoMap(layer, memoMap, scope),
        Context.merge(needs(around), ambientOf(around as Context.Context<never>)),
      ),
    ),
  )
