/** The process itself, as every role reports it. The names are those that Prometheus's own clients use. */
import { readdir } from "node:fs/promises"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { apiVersion } from "@svc/domain/Version"
import { Effect, Layer } from "effect"
import { expiryOf } from "../net/Certificates.ts"
import { collect } from "./Collectors.ts"
import * as Metrics from "./Metrics.ts"

const cpu = Metrics.gauge("process_cpu_seconds_total", "CPU time of the process, user and system", [])
const memory = Metrics.gauge("process_resident_memory_bytes", "Resident memory of the process", [])
const started = Metrics.gauge("process_start_time_seconds", "When the process started, since the epoch", [])
const files = Metrics.gauge("process_open_fds", "Open file descriptors", [])
const delay = Metrics.gauge("nodejs_eventloop_delay_seconds", "Delay of the event loop since the last scrape", [
  "quantile",
])
const heap = Metrics.gauge("nodejs_heap_used_bytes", "Used heap", [])
const build = Metrics.gauge("svc_build_info", "1, with the version and the roles of the process", ["version", "role"])
const certificate = Metrics.gauge(
  "svc_certificate_not_after_seconds",
  "When the certificate that a listener shows runs out, since the epoch",
  ["listener"],
)

const quantiles = [50, 99, 100]

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
        yield* cpu.scoped([], () => {
          const { user, system } = process.cpuUsage()
          return (user + system) / 1e6
        })
        yield* memory.scoped([], () => process.memoryUsage.rss())
        yield* heap.scoped([], () => process.memoryUsage().heapUsed)
        yield* started.scoped([], () => Math.round(Date.now() / 1000 - process.uptime()))
        yield* build.scoped([apiVersion, roles.join(",")], () => 1)
        for (const [at, quantile] of quantiles.entries()) {
          yield* delay.scoped([String(quantile / 100)], () => {
            const nanos = histogram.percentile(quantile)
            if (at === quantiles.length - 1) histogram.reset()
            return nanos / 1e9
          })
        }
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
