/** Metric of the last runs of singletons, which run in one process of the cluster. */
import * as Metrics from "./Metrics.ts"

const lastRun = Metrics.gauge(
  "svc_singleton_last_run_timestamp_seconds",
  "When a singleton, which runs in one process of the cluster, last ran in this process, since the epoch",
  ["name"],
)

export const recordRun = (name: string, millis: number): void => lastRun.set([name], millis / 1000)
