/**
 * What is around a message. The library lays the services of whoever asks over those that the actor was made with, and
 * copies both for every message, in every process that it comes through. So what costs is how many they are: actors, the
 * runner and whoever asks have only what they need, and what the runtime reads of every fiber.
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
import { TracesLeave } from "../observe/Traceparent.ts"

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
  TracesLeave,
] as const

/** Of all that there is, what the runtime reads of every fiber. */
export const ambientOf = (around: Context.Context<never>): Context.Context<never> => Context.pick(...ambient)(around)

/** The layer, made with nothing around it but what it needs: `Context.pick` of all of that. */
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
