/** The operations port: what probes and people get from it in each state of the process. */
import { createServer } from "node:http"
import * as Ops from "@svc/cli/serve/ops/Ops"
import * as Readiness from "@svc/cli/serve/ops/Readiness"
import { Health } from "@svc/cluster/health/Health"
import type { HealthReport } from "@svc/domain/health/HealthApi"
import { Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, describe, expect, it } from "vitest"
import { closeScope } from "../harness/Database.ts"
import { freePort } from "../harness/Ports.ts"

const scopes: Array<Scope.Closeable> = []
afterEach(async () => {
  for (const scope of scopes.splice(0)) await closeScope(scope)
})
const open = (port: number | undefined, readiness = Readiness.make()) => {
  const scope = Scope.makeUnsafe()
  scopes.push(scope)
  return Scope.provide(Ops.open({ host: "127.0.0.1", port }, ["api"], readiness), scope)
}
const component = (name: string, status: "pass" | "warn" | "fail", detail: string | null) => ({
  name,
  status,
  detail,
  essential: true,
  latency_ms: 1,
})
const report = (status: HealthReport["status"], ...components: HealthReport["components"]) =>
  Effect.succeed<HealthReport>({ status, version: "0", components })

describe("The operations port", () => {
  it("responds to each probe by the state of the process", async () => {
    const readiness = Readiness.make()
    const place = await Effect.runPromise(open(0, readiness))
    const got = async (path: string, method = "GET") => {
      const response = await fetch(`http://${place}${path}`, { method })
      const text = await response.text()
      return [response.status, text === "" ? "" : JSON.parse(text)]
    }
    const ready = async () => [await got("/readyz"), /^svc_ready (\d)$/m.exec(await metrics())?.[1]]
    const metrics = async () => (await fetch(`http://${place}/metrics?x=1`)).text()

    expect(await ready()).toEqual([[503, { status: "starting" }], "0"])
    readiness.serves(report("pass", component("store", "pass", null)))
    expect(await ready()).toEqual([[200, { status: "ready", components: [] }], "1"])
    const ailing = [component("store", "fail", "no answer"), component("cluster", "warn", null)]
    const shown = ailing.map(({ name, status, detail }) => ({ name, status, detail }))
    readiness.serves(report("warn", component("audit", "pass", null), ...ailing))
    expect(await ready()).toEqual([[200, { status: "ready", components: shown }], "1"])
    readiness.serves(report("fail", ...ailing))
    expect(await got("/readyz?verbose")).toEqual([503, { status: "failing", components: shown }])
    readiness.leaves()
    expect(await ready()).toEqual([[503, { status: "leaving" }], "0"])

    expect(await got("/livez")).toEqual([200, { status: "alive" }])
    expect(await got("/livez", "HEAD")).toEqual([200, ""])
    expect(await got("/livez", "POST")).toEqual([405, { status: "GET only" }])
    expect(await got("/")).toEqual([404, { status: "not found", pages: ["/livez", "/readyz", "/metrics"] }])
    const used = () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6
    const before = used()
    const reported = Number(/^process_cpu_seconds_total (\S+)$/m.exec(await metrics())?.[1])
    expect([before <= reported, reported <= used()]).toEqual([true, true])
    const { headers } = await fetch(`http://${place}/metrics`)
    expect(headers.get("cache-control")).toBe("no-store")
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
  })

  it("reports a chosen port that is in use, and does without the usual one", async () => {
    const held = createServer()
    const port = await freePort()
    await new Promise<void>((resolve) => held.listen(port, "127.0.0.1", resolve))
    try {
      const refused = await Effect.runPromise(Effect.flip(open(port)))
      expect(refused).toMatchObject({ _tag: "SettingsInvalid" })
      expect(refused.message).toMatch(
        new RegExp(`^127\\.0\\.0\\.1:${port} cannot be opened \\(.*EADDRINUSE.*SVC_OPS_PORT`),
      )
    } finally {
      held.close()
    }
    const usual = createServer()
    // Another program of this machine may have it.
    await new Promise<void>((resolve) =>
      usual.once("error", () => resolve()).listen(Ops.usualPort, "127.0.0.1", resolve),
    )
    const warnings: Array<unknown> = []
    const logger = Logger.layer([Logger.make(({ logLevel, message }) => void warnings.push(logLevel, message))])
    try {
      expect(await Effect.runPromise(Effect.provide(open(undefined), logger))).toBeUndefined()
      expect(warnings).toEqual(["Warn", [expect.stringMatching(/^Port 9090 is in use.*Set SVC_OPS_PORT\.$/)]])
    } finally {
      usual.close()
    }
  })

  it("says for a while that the process leaves, before anything else stops", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const readiness = Readiness.make()
        const order: Array<string> = []
        const parts = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => order.push("parts stopped"))))
        const scope = yield* Scope.make()
        yield* Layer.buildWithScope(
          Readiness.announced(readiness, "10 seconds").pipe(Layer.provide(parts), Layer.provide(Health.layer)),
          scope,
        )
        expect(readiness.state()).toBe("ready")
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
        yield* TestClock.adjust("9 seconds")
        order.push(readiness.state())
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(closing)
        expect(order).toEqual(["leaving", "parts stopped"])
      }).pipe(Effect.provide([TestClock.layer(), Logger.layer([])])),
    ))
})
