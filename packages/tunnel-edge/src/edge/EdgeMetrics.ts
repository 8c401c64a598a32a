/** Metrics of the edge: links, connections, requests and bytes, as totals without labels per name. */
import * as Metrics from "@svc/cluster/observe/Metrics"

export const links = Metrics.gauge("svc_tunnel_links", "Links that agents hold with this edge", [])
export const connections = Metrics.gauge("svc_tunnel_connections", "Open public connections", [])

const requests = Metrics.counter(
  "svc_tunnel_requests_total",
  "Public requests: forwarded to an agent, or answered by the edge, with the status of its answer",
  ["outcome"],
  [["forwarded"]],
)
const bytes = Metrics.counter(
  "svc_tunnel_bytes_total",
  "Bytes of public connections; in is towards the agents",
  ["direction"],
  [["in"], ["out"]],
)

export const passed = { in: bytes.of("in"), out: bytes.of("out") }

const status = /^HTTP\/1\.1 (\d{3})/

/** Counts a request: undefined if it was forwarded, or the edge's own response. */
export const routed = (answer: Buffer | undefined): void => {
  const outcome = answer === undefined ? "forwarded" : (status.exec(answer.toString("latin1", 0, 16))?.[1] ?? "refused")
  requests.of(outcome).n++
}
