/** Metrics as served agree with the document, the alert rules, the dashboard and the configured port. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import * as path from "node:path"
import * as RequestMetrics from "@svc/api/RequestMetrics"
import * as Ops from "@svc/cli/serve/ops/Ops"
import * as Readiness from "@svc/cli/serve/ops/Readiness"
import * as Metrics from "@svc/cluster/observe/Metrics"
import { families } from "@svc/cluster/observe/Metrics"
import { Api } from "@svc/domain/Api"
import { Effect, Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { closeScope } from "../harness/Database.ts"
import { has } from "../harness/Programs.ts"
import { startService, type OwnService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
const read = (...names: ReadonlyArray<string>) => readFileSync(path.join(root, ...names), "utf8")

const documented = () =>
  [...read("docs", "operations.md").matchAll(/^\| `([a-z_]+)` \| (counter|gauge|histogram|summary) \|([^|]*)\|/gm)].map(
    ([, name, type, labels]) => ({
      name: name!,
      type: type!,
      labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, one]) => one),
    }),
  )
/** Names of the documented metrics of the cluster library. */
const ofTheLibrary = () =>
  [...read("docs", "operations.md").matchAll(/`(effect_cluster_\w+)`/g)].map(([, name]) => name!)

const namesIn = (text: string) => [
  ...new Set([...text.matchAll(/\b((?:svc|http|process|nodejs|effect)_[a-z0-9_]+)\b(?!=)/g)].map(([, name]) => name!)),
]
const family = (name: string) => name.replace(/_(bucket|sum|count)$/, "")

let service: OwnService
const scope = Scope.makeUnsafe()
let scrape: () => Promise<string>
beforeAll(async () => {
  service = await startService()
  const readiness = Readiness.make()
  const place = await Effect.runPromise(
    Scope.provide(Ops.open({ host: "127.0.0.1", port: 0 }, ["api"], readiness), scope),
  )
  scrape = async () => (await fetch(`http://${place}/metrics`)).text()
})
afterAll(async () => {
  await closeScope(scope)
  await service.stop()
})

describe("the metrics", () => {
  it("are documented completely, with their labels", () => {
    const sorted = <A extends { readonly name: string }>(list: ReadonlyArray<A>) =>
      list.toSorted((one, other) => one.name.localeCompare(other.name))
    expect(sorted(documented())).toEqual(
      sorted(families().map(({ name, type, labels }) => ({ name, type, labels: [...labels] }))),
    )
  })

  it("of rules and dashboards are documented, and each rule has a paragraph", () => {
    const known = new Set([...documented().map(({ name }) => name), ...ofTheLibrary()])
    const rules = read("deploy", "monitoring", "alerts.yml")
    const dashboard = JSON.parse(read("deploy", "monitoring", "dashboard.json")) as {
      panels: ReadonlyArray<{ targets?: ReadonlyArray<{ expr: string }> }>
    }
    const expressions = [
      ...[...rules.matchAll(/^ +expr: '(.*)'$/gm)].map(([, expression]) => expression!),
      ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ]
    expect(expressions.length).toBeGreaterThan(30)
    const usedNames = expressions.flatMap((expression) => namesIn(expression.replaceAll(/\{[^}]*\}/g, "")))
    const labels = new Set(documented().flatMap(({ labels: of }) => of))
    expect(usedNames.filter((name) => !known.has(family(name)) && !labels.has(name))).toEqual([])
    const page = read("docs", "operations.md")
    const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name!)
    expect(alerts.filter((name) => !page.includes(`**${name}**`))).toEqual([])
  })

  it("count requests by route pattern, and have no label with a caller's text", async () => {
    const { session } = await signUp(service.base)
    const { identity } = await makeIdentity(service.base, session)
    const authorization = `Bearer ${session}`
    await fetch(`${service.base}/api/identities/${identity.handle}`, { headers: { authorization } })
    // Earlier test files of the same worker may have incremented the counters.
    const before = await scrape()
    await fetch(`${service.base}/api/identities/nobody`, { headers: { authorization } })
    const text = await scrape()
    for (const handle of [identity.handle, "nobody", "nobody"])
      await fetch(`${service.base}/api/mcp`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name: "svc_identity_get", arguments: { handle } },
        }),
      })
    const afterTools = await scrape()
    const value = (line: RegExp) => Number(line.exec(text)?.[1])
    // Finds the series of the endpoint, whatever the order of the labels is.
    const requests = (status: string, text: string) =>
      [...text.matchAll(/^http_server_requests_total\{(.*)\} (\d+)$/gm)].find(
        ([, labels]) =>
          labels!.includes('http_request_method="GET"') &&
          labels!.includes('http_route="/api/identities/:handle"') &&
          labels!.includes(`http_response_status_class="${status}"`),
      )?.[2]
    const [done, refused] = [Number(requests("2xx", text)), Number(requests("4xx", text))]
    // The request of a tool call counts like any other.
    expect(["2xx", "4xx"].map((status) => Number(requests(status, afterTools)))).toEqual([done + 1, refused + 2])
    const tools = (outcome: string, text: string) =>
      [...text.matchAll(/^svc_mcp_calls_total\{(.*)\} (\d+)$/gm)].find(
        ([, labels]) => labels!.includes('tool="svc_identity_get"') && labels!.includes(`outcome="${outcome}"`),
      )?.[2] ?? 0
    expect(
      ["done", "refused"].map((outcome) => Number(tools(outcome, afterTools)) - Number(tools(outcome, text))),
    ).toEqual([1, 2])
    expect(done).toBeGreaterThanOrEqual(1)
    expect(refused - Number(requests("4xx", before) ?? 0)).toBe(1)
    // Creating the Identity counts in the same area.
    expect(value(/^http_server_request_duration_seconds_count\{area="identities"\} (\d+)$/m)).toBeGreaterThan(
      done + refused,
    )
    expect(value(/^svc_problems_total\{code="not_found"\} (\d+)$/m)).toBeGreaterThanOrEqual(1)
    // Finds the series of the message, whatever the order of the labels is.
    const usedNames = [...text.matchAll(/^svc_asks_total\{(.*)\} (\d+)$/gm)]
    const created = usedNames.find(([, labels]) => labels!.includes('message="Identity.Create"'))
    expect(created?.[1]).toContain('outcome="answered"')
    expect(Number(created?.[2])).toBeGreaterThanOrEqual(1)
    expect(value(/^svc_signins_total\{outcome="opened"\} (\d+)$/m)).toBeGreaterThanOrEqual(1)
    expect(text).toMatch(/^svc_db_pool_used\{pool="Writes"\} \d+$/m)
    expect(value(/^svc_saga_steps_total\{.*outcome="done".*\} (\d+)$/m)).toBeGreaterThanOrEqual(1)
    const sizes = [...text.matchAll(/^svc_smtp_message_bytes_bucket\{le="(\d+)"\}/gm)].map(([, bound]) => Number(bound))
    expect([sizes[0], sizes.at(-1)]).toEqual([1024, 16 * 1024 ** 2])
    expect(text).not.toContain(identity.handle)
    expect(text).not.toContain("nobody")
    // Each metric has one TYPE line and is documented.
    const typeLines = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name!)
    expect(new Set(typeLines).size).toBe(typeLines.length)
    const known = new Set([...documented().map(({ name }) => name), ...ofTheLibrary()])
    expect(typeLines.filter((name) => !known.has(name))).toEqual([])
  })

  it("have a help text each, and summaries with a sum and a count that only grow", async () => {
    const text = await scrape()
    const names = (keyword: string) =>
      [...text.matchAll(new RegExp(`^# ${keyword} (\\S+) `, "gm"))].map(([, name]) => name!)
    expect(names("TYPE").filter((name) => !names("HELP").includes(name))).toEqual([])
    const count = (of: string) => Number(/^nodejs_eventloop_delay_seconds_count (\d+)$/m.exec(of)?.[1])
    const sum = (of: string) => Number(/^nodejs_eventloop_delay_seconds_sum (\S+)$/m.exec(of)?.[1])
    expect(count(text)).toBeGreaterThan(0)
    const later = await scrape()
    expect(count(later)).toBeGreaterThanOrEqual(count(text))
    expect(sum(later)).toBeGreaterThanOrEqual(sum(text))
    expect(sum(later) / count(later)).toBeLessThan(10)
  })

  it("are described once, by the service or the library", () => {
    const type = "# TYPE effect_cluster_entities gauge\n"
    const ours = Ops.described(type)
    expect(ours).toMatch(/^# HELP effect_cluster_entities .+\n# TYPE effect_cluster_entities gauge\n$/)
    expect(Ops.described(ours)).toBe(ours)
    expect(Ops.described(`# HELP effect_cluster_entities theirs\n${type}`)).toBe(
      `# HELP effect_cluster_entities theirs\n${type}`,
    )
  })

  it.skipIf(!has("promtool"))("are what promtool accepts without a remark", async () => {
    const text = await scrape()
    const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" })
    const report = `${checked.stdout}${checked.stderr}`
    // The number of the line in promtool's message.
    const line = Number(/line (\d+)/.exec(report)?.[1] ?? 1)
    expect(
      report === ""
        ? ""
        : `${report}${text
            .split("\n")
            .slice(line - 3, line)
            .join("\n")}`,
    ).toBe("")
    expect(checked.status).toBe(0)
  })

  it("stay below 2,000 series when every endpoint has returned every class of status", async () => {
    const series = async () =>
      (await scrape()).split("\n").filter((line) => line !== "" && !line.startsWith("#")).length
    for (const group of Object.values(Api.groups)) {
      for (const { method, path: pattern } of Object.values(group.endpoints)) {
        const endpoint = RequestMetrics.endpointOf(pattern, group.identifier)
        for (const status of [200, 201, 304, 400, 401, 404, 409, 429, 500, 503])
          RequestMetrics.recordResponse(method, endpoint, status, performance.now())
      }
    }
    // Tools, actor messages and saga steps have a few hundred series, none of them in a histogram.
    expect(await series()).toBeLessThan(1700)
  })
})

it("count each observation of a histogram in the bucket of its bound and in all higher ones", async () => {
  const histogram = Metrics.histogram("svc_test_seconds", "A test", [1, 2, 5], []).of()
  for (const value of [0.5, 1, 1.5, 5, 6]) histogram.observe(value)
  const text = await Effect.runPromise(PrometheusMetrics.format())
  const found = [...text.matchAll(/^svc_test_seconds(_\w+)(?:\{le="([^"]+)"\})? (\S+)/gm)]
  expect(found.map(([, kind, le, value]) => `${kind} ${le ?? ""} ${value}`)).toEqual([
    "_bucket 1 2",
    "_bucket 2 3",
    "_bucket 5 4",
    "_bucket +Inf 5",
    "_sum  14",
    "_count  5",
  ])
})
