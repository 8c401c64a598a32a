/**
 * Request metrics, labeled by method, path pattern and status class, never by path. A histogram series costs 17 lines of a
 * scrape, so durations are only labeled by the area of the API.
 */
import type { Server } from "node:http"
import * as Metrics from "@svc/cluster/observe/Metrics"

const requests = Metrics.counter("http_server_requests_total", "Requests by the class of their status (2xx, 5xx)", [
  "http_request_method",
  "http_route",
  "http_response_status_class",
])
const duration = Metrics.histogram(
  "http_server_request_duration_seconds",
  "How long requests took, by the area of the API",
  Metrics.seconds,
  ["area"],
)
const active = Metrics.gauge("http_server_active_requests", "Requests in flight, streams included", [])

/** The label of requests outside the API's endpoints. */
const pageEndpoint = { route: "(page)", area: "pages" }

/** The area of long-polling endpoints, whose duration depends on how long they wait. */
const waiting = "waiting"

export interface Endpoint {
  /** Returns the pattern of the path. */
  readonly route: string
  readonly area: string
}

export const endpointOf = (path: string, group: string): Endpoint => ({
  route: path,
  area: /\/(?:stream|wait)$/.test(path) ? waiting : group,
})

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
const classes = Array.from({ length: 6 }, (_, digit) => `${digit}xx`)

export const recordResponse = (
  method: string,
  endpoint: Endpoint | undefined,
  status: number,
  startedAt: number,
): void => {
  const { route, area } = endpoint ?? pageEndpoint
  requests.of(methods.has(method) ? method : "_OTHER", route, classes[Math.floor(status / 100)] ?? "0xx").n++
  duration.of(area).observe((performance.now() - startedAt) / 1000)
}

/** Counts the requests that a server is processing. */
export const watched = (server: Server): Server => {
  let underWay = 0
  const { remove } = active.read([], () => underWay)
  server.once("close", remove)
  return server.on("request", (_, response) => {
    underWay++
    response.once("close", () => underWay--)
  })
}
