/** Requests as they are counted: by method, the endpoint's pattern and the status, never by path. */
import type { Server } from "node:http"
import * as Metrics from "@svc/cluster/observe/Metrics"

const duration = Metrics.histogram("http_server_request_duration_seconds", "How long requests took", Metrics.seconds, [
  "http_request_method",
  "http_route",
  "http_response_status_code",
])
const active = Metrics.gauge("http_server_active_requests", "Requests under way, streams among them", [])

/** What is no endpoint: pages, and what nothing answers to. */
const elsewhere = "(page)"

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
const statuses = Array.from({ length: 600 }, (_, status) => String(status))

export const answered = (method: string, route: string | undefined, status: number, startedAt: number): void =>
  duration
    .of(methods.has(method) ? method : "_OTHER", route ?? elsewhere, statuses[status] ?? "0")
    .observe((performance.now() - startedAt) / 1000)

/** Counts what is under way at a server. */
export const watched = (server: Server): Server => {
  let underWay = 0
  const { remove } = active.read([], () => underWay)
  server.once("close", remove)
  return server.on("request", (_, response) => {
    underWay++
    response.once("close", () => underWay--)
  })
}
