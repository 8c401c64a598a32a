/** Metrics of the process itself, with the names that Prometheus's own clients use. */
import { readdir } from "node:fs/promises"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { apiVersion } from "@svc/domain/Version"
import { Effect, Layer } from "effect"
import { expiryOf } from "../net/Certificates.ts"
import { collect } from "./Collectors.ts"
import * as Metrics from "./Metrics.ts"

const cpu = Metrics.readCounter("process_cpu_seconds_total", "CPU time of the process, user and system")
const memory = Metrics.gauge("process_resident_memory_bytes", "Resident memory of the process", [])
const started = Metrics.gauge("process_start_time_seconds", "When the process started, since the epoch", [])
const files = Metrics.gauge("process_open_fds", "Open file descriptors", [])
const quantiles = [0.5, 0.99, 1]
const delay = Metrics.readSummary(
  "nodejs_eventloop_delay_seconds",
  "Delay of the event loop: quantiles since the last scrape, sum and count since the start",
  quantiles,
)
const heap = Metrics.gauge("nodejs_heap_used_bytes", "Used heap", [])
const build = Metrics.gauge("svc_build_info", "1, with the version and the roles of the process", ["version", "role"])
const certificate = Metrics.gauge(
  "svc_certificate_not_after_seconds",
  "When the certificate of a listener expires, since the epoch",
  ["listener"],
)

/** Returns a function that reads the delay's quantiles since the last read, and its sum and count since the start. */
const delayOf = (histogram: ReturnType<typeof monitorEventLoopDelay>) => {
  let [sum, count] = [0, 0]
  return () => {
    const seen = histogram.count
    const seconds = quantiles.map((quantile): [number, number | undefined] => [
      quantile,
      seen === 0 ? undefined : histogram.percentile(quantile * 100) / 1e9,
    ])
    if (seen > 0) sum += (histogram.mean * seen) / 1e9
    count += seen
    histogram.reset()
    return { quantiles: seconds, sum, count }
  }
}

export const layer = (roles: ReadonlyArray<string>) =>
  Layer.merge(
    Layer.effectDiscard(
      Effect.gen(function* () {
        const histogram = yield* Effect.acquireRelease(
          Effect.sync(() => {
            const made = monitorEventLoopDelay({ resolution: 10 })
            made.enable()
            return made
          }),
          (made) => Effect.sync(() => void made.disable()),
        )
        yield* cpu(() => {
          const { user, system } = process.cpuUsage()
          return (user + system) / 1e6
        })
        yield* memory.scoped([], () => process.memoryUsage.rss())
        yield* heap.scoped([], () => process.memoryUsage().heapUsed)
        yield* started.scoped([], () => Math.round(Date.now() / 1000 - process.uptime()))
        yield* build.scoped([apiVersion, roles.join(",")], () => 1)
        yield* delay(delayOf(histogram))
      }),
    ),
    collect(
      Effect.gen(function* () {
        for (const [listener, millis] of expiryOf) certificate.set([listener], millis / 1000)
        const open = yield* Effect.tryPromise(() => readdir("/proc/self/fd"))
        files.set([], open.length)
      }),
    ),
  )
