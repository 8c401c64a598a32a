/** When the parts that one process of the cluster runs have last done their round. */
import * as Metrics from "./Metrics.ts"

const lastRun = Metrics.gauge(
  "svc_singleton_last_run_timestamp_seconds",
  "When a part that one process of the cluster runs has last done its round here, since the epoch",
  ["name"],
)

export const ran = (name: string, millis: number): void => lastRun.set([name], millis / 1000)
