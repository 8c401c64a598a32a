/**
 * Traces: sampling is decided at the root, spans contain no secrets, and a client's trace id is continued without its sampling decision.
 */
import { guarded, layer, sampling, takenOver } from "@svc/cli/serve/ops/Tracing"
import * as Token from "@svc/domain/account/Token"
import { makeOAuthToken } from "@svc/domain/account/Token"
import * as Redaction from "@svc/cluster/observe/Redaction"
import { Effect, Option, Tracer } from "effect"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import type { Networks } from "@svc/cluster/net/ClientNetwork"
import ipaddr from "ipaddr.js"
import { json } from "node:stream/consumers"
import { describe, expect, it, vi } from "vitest"

/** Creates a tracer that records its spans. */
const recorder = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    },
  })
  return { spans, tracer }
}

const nested = Effect.void.pipe(Effect.withSpan("inner"), Effect.withSpan("outer"))

describe("a trace", () => {
  it("is sampled at its root, and its children follow", async () => {
    const { spans, tracer } = recorder()
    const draws = [0.005, 0.5]
    const sampled = sampling(tracer, 0.01, () => draws.shift()!)
    await Effect.runPromise(Effect.andThen(nested, nested).pipe(Effect.withTracer(sampled)))
    expect(spans.map(({ name, sampled: taken }) => [name, taken])).toEqual([
      ["outer", true],
      ["inner", true],
      ["outer", false],
      ["inner", false],
    ])
    expect(draws).toEqual([])
  })

  it("follows the sampling of a parent in another process", async () => {
    const { spans, tracer } = recorder()
    const parent = (taken: boolean) =>
      Tracer.externalSpan({ traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: taken })
    for (const taken of [true, false]) {
      await Effect.runPromise(
        Effect.void.pipe(
          Effect.withSpan("handled", { parent: parent(taken) }),
          Effect.withTracer(sampling(tracer, 0, () => 0.9)),
        ),
      )
    }
    expect(spans.map(({ sampled: taken, parent: of }) => [taken, Option.getOrThrow(of).traceId])).toEqual([
      [true, "a".repeat(32)],
      [false, "a".repeat(32)],
    ])
  })

  it("is not created without an exporter", async () => {
    const { spans, tracer } = recorder()
    await Effect.runPromise(nested.pipe(Effect.withTracer(tracer), Effect.provide(layer(["api"], 1))))
    expect(spans).toEqual([])
  })

  it.each([
    [0, "", 0],
    [1, "", 2],
    [1, "none", 0],
  ])(
    "is exported at the rate of the settings (%d), and not with OTEL_TRACES_EXPORTER=none ('%s')",
    async (rate, exporter, count) => {
      const names: Array<string> = []
      const collector = createServer((request, response) => {
        void json(request).then((body: any) => {
          for (const { scopeSpans } of body.resourceSpans)
            for (const { spans } of scopeSpans) names.push(...spans.map(({ name }: { name: string }) => name))
          response.setHeader("content-type", "application/json").end("{}")
        })
      })
      await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
      vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", `http://127.0.0.1:${(collector.address() as AddressInfo).port}`)
      if (exporter !== "") vi.stubEnv("OTEL_TRACES_EXPORTER", exporter)
      await Effect.runPromise(nested.pipe(Effect.provide(layer(["api"], rate))))
      vi.unstubAllEnvs()
      collector.close()
      expect(names.length).toBe(count)
    },
  )

  it("of an external caller keeps its id, and is sampled by our own rate", () => {
    const id = `00-${"4b".repeat(16)}-${"a1".repeat(8)}`
    expect(takenOver(`${id}-01`, false)).toBe(`${id}-00`)
    expect(takenOver(`${id}-00`, true)).toBe(`${id}-01`)
    expect(takenOver("00-zz-01", true)).toBeUndefined()
    expect(takenOver(undefined, true)).toBeUndefined()
  })

  it("of an external caller is continued without its sampling decision, and that of a trusted proxy unchanged", async () => {
    const id = `00-${"4b".repeat(16)}-${"a1".repeat(8)}`
    const b3 = {
      b3: "1",
      "x-b3-traceid": "1",
      "x-b3-spanid": "1",
      "x-b3-parentspanid": "1",
      "x-b3-sampled": "1",
      "x-b3-flags": "1",
    }
    const seen = async (trusted: Networks, rate: number, headers: Record<string, string>) => {
      const received = Promise.withResolvers<IncomingHttpHeaders>()
      const server = createServer((request, response) => {
        received.resolve(request.headers)
        response.end()
      })
      await new Promise<void>((resolve) => guarded(server, trusted, rate).listen(0, "127.0.0.1", resolve))
      await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { headers })
      server.close()
      return Object.fromEntries(
        Object.entries(await received.promise).filter(([name]) => /^traceparent$|b3/.test(name)),
      )
    }
    const networks = (...of: ReadonlyArray<string>): Networks => of.map((one) => ipaddr.parseCIDR(one))
    const nobody = networks()
    expect(await seen(nobody, 0, { traceparent: `${id}-01` })).toEqual({ traceparent: `${id}-00` })
    expect(await seen(nobody, 1, { traceparent: `${id}-00` })).toEqual({ traceparent: `${id}-01` })
    expect(await seen(nobody, 1, { ...b3, traceparent: `${id}-00` })).toEqual({ traceparent: `${id}-01` })
    expect(await seen(nobody, 1, { traceparent: "00-x-01" })).toEqual({})
    expect(await seen(nobody, 1, { b3: "1" })).toEqual({})
    expect(await seen(nobody, 1, { "x-b3-traceid": "1", "x-b3-sampled": "1" })).toEqual({})
    expect(await seen(networks("127.0.0.1/32"), 0, { ...b3, traceparent: `${id}-01` })).toEqual({
      ...b3,
      traceparent: `${id}-01`,
    })
    expect(await seen(networks("192.0.2.0/24"), 0, { traceparent: `${id}-01` })).toEqual({ traceparent: `${id}-00` })
  })

  it("contains no parameters, secrets or client addresses", async () => {
    const { spans, tracer } = recorder()
    await Effect.runPromise(
      Effect.gen(function* () {
        const span = yield* Effect.currentSpan
        span.event("retried", 1n, { reason: "refused svc_admin_abcdefghijkl" })
        span.event("done", 2n)
      }).pipe(
        Effect.withSpan("statement", {
          attributes: {
            "db.query.text": "select password from user where token = 'svc_admin_abcdefghijkl'",
            "client.address": "203.0.113.7",
            "url.full": "https://svc.example.org/auth/magic-link?token=s3cret",
            authorization: "Bearer svc_admin_abcdefghijkl",
            note: "the key is svc_id_0123456789abcdef",
          },
        }),
        Effect.withTracer(sampling(tracer, 1)),
      ),
    )
    expect(Object.fromEntries(spans[0]!.attributes)).toEqual({
      "db.operation.name": "select",
      authorization: "<redacted>",
      note: "the key is svc_id_<redacted>",
    })
    expect((spans[0] as Tracer.NativeSpan).events.map(([name, , attributes]) => [name, attributes])).toEqual([
      ["retried", { reason: "refused svc_admin_<redacted>" }],
      ["done", {}],
    ])
  })
})

describe("logs and traces", () => {
  it("contain no token that the service issues", () => {
    const random = new Uint8Array(32).fill(7)
    const tokens = [
      ...(["session", "admin_key", "identity_key", "grant"] as const).map((kind) => Token.make(kind, random)),
      ...(["access", "refresh", "code"] as const).map((kind) => makeOAuthToken(kind, random)),
    ]
    for (const token of tokens) expect(Redaction.ofText(`told ${token} aloud`)).toMatch(/^told \w+_<redacted> aloud$/)
  })

  it("describe an error by its message", () => {
    const redacted = Redaction.of("", [
      "A command ended",
      new Error("at postgres://svc:s3cret@db", { cause: new Error("why") }),
    ])
    expect(JSON.stringify(redacted)).toMatch(/A command ended.*at postgres:\/\/svc:<redacted>@db.*why/)
  })

  it("contain no credentials, passwords in URLs or private keys", () => {
    const redacted = Redaction.of("", {
      url: "postgres://svc:s3cret@db/svc",
      nested: { magic_token: "abc", text: "whsec_c2VjcmV0IHNlY3JldA== and Bearer abcdefghijklmnop" },
      pem: "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----",
      link: "https://svc.example.org/auth?token=abcdef&next=1",
      handle: "ada",
      status: 200,
      key_id: "key_1",
    })
    expect(redacted).toEqual({
      url: "postgres://svc:<redacted>@db/svc",
      nested: { magic_token: "<redacted>", text: "whsec_<redacted> and Bearer <redacted>" },
      pem: "<redacted>",
      link: "https://svc.example.org/auth?token=<redacted>&next=1",
      handle: "ada",
      status: 200,
      key_id: "key_1",
    })
  })
})
