/** The doctor of the machine, of outgoing mail and of DNS, with the states that it accepts and those that it reports. */
import childProcess from "node:child_process"
import dns from "node:dns/promises"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import os from "node:os"
import * as Dns from "@svc/cli/doctor/Dns"
import type { Finding } from "@svc/cli/doctor/Finding"
import * as Machine from "@svc/cli/doctor/Machine"
import * as Outgoing from "@svc/cli/doctor/Outgoing"
import type { Settings } from "@svc/cli/serve/Settings"
import { Effect, Option, Redacted } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { sink } from "../mail/sending/Sinks.ts"

const judged = ({ status, detail, remedy }: Finding) => {
  expect(remedy === "").toBe(status === "ok")
  return [status, detail]
}

/** Functions of Node that a test replaces for modules that import them by name. */
const replaced = <T extends object, K extends keyof T>(module: T, name: K, value: T[K]) => {
  const own = module[name]
  module[name] = value
  syncBuiltinESMExports()
  restoring.push(() => {
    module[name] = own
    syncBuiltinESMExports()
  })
}
const restoring: Array<() => void> = []
afterEach(() => {
  for (const restore of restoring.splice(0)) restore()
  vi.restoreAllMocks()
})

describe("The doctor of the machine", () => {
  const settings = (more: object) =>
    ({ dataDirectory: os.tmpdir(), databaseUrl: Option.none(), environment: "production", ...more }) as Settings
  const gibibyte = 1024 ** 3
  const blocks = 4096
  const disk = (gibibytes: number, files = 100, ffree = 100) =>
    replaced(fs, "statfsSync", (() => ({
      bavail: (gibibytes * gibibyte) / blocks,
      bsize: blocks,
      files,
      ffree,
    })) as never)

  it.each([
    [10, 100, 100, "ok", /, 10\.0 GiB free$/],
    [2, 100, 100, "ok", /, 2\.0 GiB free$/],
    [1.99, 100, 100, "warn", /, 2\.0 GiB free$/],
    [0.2, 100, 100, "warn", /, 0\.2 GiB free$/],
    [0.19, 100, 100, "fail", /, 0\.2 GiB free$/],
    [10, 100, 10, "ok", /, 10\.0 GiB free$/],
    [10, 100, 9, "warn", /, 10\.0 GiB free, but 9 of 100 files$/],
    // Some file systems have no number of files.
    [10, 0, 0, "ok", /, 10\.0 GiB free$/],
  ])("judges the free space: %d GiB, %d files, %d of them free", async (size, files, free, status, detail) => {
    disk(size, files, free)
    expect(judged(await Effect.runPromise(Machine.data(settings({}))))).toEqual([status, expect.stringMatching(detail)])
  })

  it("looks at the nearest folder that exists, and at none with another database", async () => {
    const looked: Array<unknown> = []
    const refusing = (place: unknown) => {
      looked.push(place)
      throw new Error("EACCES")
    }
    replaced(fs, "accessSync", refusing as never)
    const found = (more: object) => Effect.runPromise(Machine.data(settings(more)))
    const finding = await found({ dataDirectory: `${os.tmpdir()}/svc-none/below/it` })
    expect(judged(finding)).toEqual(["fail", `${os.tmpdir()} is not writable`])
    expect(looked).toEqual([os.tmpdir()])
    const elsewhere = await found({ databaseUrl: Option.some(Redacted.make("postgres://x")) })
    expect(judged(elsewhere)).toEqual(["ok", "the database of DATABASE_URL"])
    expect(looked).toHaveLength(1)
  })

  it.each([
    [gibibyte, "ok", "1.0 GiB"],
    [gibibyte - 1, "warn", "1.0 GiB"],
    [8 * gibibyte, "ok", "8.0 GiB"],
  ])("wants a gibibyte of memory: %d bytes", async (bytes, status, detail) => {
    replaced(os, "totalmem", () => bytes)
    expect(judged(await Effect.runPromise(Machine.memory))).toEqual([status, detail])
  })

  it.each([
    ["2000\n", "production", [["ok", "at most 2000"]]],
    ["1999\n", "production", [["warn", "at most 1999, and SVC_EDGE_CONNECTIONS lets 1000 connections in"]]],
    ["unlimited\n", "production", [["ok", "at most Infinity"]]],
    ["1999\n", "development", []],
    ["what?", "production", []],
  ])("compares the limit of open files %j with the connections in %s", async (limit, environment, expected) => {
    replaced(childProcess, "spawnSync", (() => ({ stdout: limit })) as never)
    const found = await Effect.runPromise(Machine.openFiles(settings({ environment, edgeConnections: 1000 })))
    expect(found.map(judged)).toEqual(expected)
    if (expected[0]?.[0] === "warn") expect(found[0]!.remedy).toMatch(/LimitNOFILE=2000/)
  })
})

describe("The doctor of outgoing mail", () => {
  const found = (more: object) =>
    Effect.map(
      Outgoing.findings({
        dataDirectory: "/nowhere",
        databaseUrl: Option.none(),
        mailDomain: "localhost",
        mailServers: [],
        mailDirect: false,
        relay: Option.none(),
        ...more,
      } as unknown as Settings),
      (all) => all.map(judged),
    )
  const relay = (port: number, tls: string, login?: object) => ({
    relay: Option.some({ host: "127.0.0.1", port, tls, login }),
  })

  it("logs in to the relay", async () => {
    const options = {
      onAuth: (auth: { password?: string }, _: unknown, done: (error: Error | null, user?: object) => void) =>
        auth.password === "right" ? done(null, { user: "svc" }) : done(new Error("no")),
    }
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { port } = yield* sink({ ...options, authMethods: ["PLAIN"], allowInsecureAuth: true } as never)
          const at = `relay 127.0.0.1:${port}`
          const login = (password: string) => ({ user: "svc", password: Redacted.make(password) })
          expect(yield* found(relay(port, "none"))).toEqual([["ok", `through the ${at}, unencrypted`]])
          expect(yield* found(relay(port, "optional"))).toEqual([["ok", `through the ${at}, over TLS`]])
          expect(yield* found(relay(port, "optional", login("right")))).toEqual([["ok", `through the ${at}, over TLS`]])
          expect(yield* found(relay(port, "optional", login("wrong")))).toEqual([
            ["fail", expect.stringMatching(`^the ${at} does not accept the service: 535 `)],
          ])
          expect(yield* found(relay(port, "none", login("right")))).toEqual([
            ["fail", expect.stringMatching(/the password is only sent over TLS$/)],
          ])
          // The certificate is of no authority that this machine trusts.
          expect(yield* found(relay(port, "required"))).toEqual([
            ["fail", expect.stringMatching(`^the ${at} does not accept the service: `)],
          ])
        }),
      ),
    )
  })

  it("names the sending host, or says that no mail leaves", async () => {
    const run = (more: object) => Effect.runPromise(found(more))
    expect(await run({})).toEqual([["ok", "not sent to other domains: set SVC_SMTP_RELAY_URL or SVC_MAIL_DIRECT"]])
    expect(await run({ mailDirect: true })).toEqual([
      ["ok", expect.stringMatching(/^delivered directly as localhost \((?:127\.0\.0\.1|::1)\)$/)],
    ])
    expect(await run({ mailDirect: true, mailServers: ["mx.invalid", "localhost"] })).toEqual([
      ["warn", "delivered directly as mx.invalid, which does not resolve"],
    ])
  })
})

describe("The doctor of DNS", () => {
  const asked = (kind: Parameters<Dns.Ask>[1], name = "a.example") =>
    Effect.runPromise(Effect.result(Dns.asking(undefined)(name, kind)))

  it.each([
    ["MX", "resolveMx", [{ priority: 10, exchange: "MX.example" }], ["10 mx.example."]],
    ["TXT", "resolveTxt", [["v=", "spf1"], ["other"]], ["v=spf1", "other"]],
    ["SRV", "resolveSrv", [{ priority: 1, weight: 2, port: 993, name: "Mail.example" }], ["1 2 993 mail.example."]],
    ["CNAME", "resolveCname", ["b.example"], ["b.example"]],
    ["PTR", "reverse", ["Mail.Example"], ["mail.example"]],
    ["CAA", "resolveCaa", [{ issue: "ca.example" }, { iodef: "mailto:x" }], ["ca.example"]],
    ["A", "resolve4", ["192.0.2.1"], ["192.0.2.1"]],
    ["AAAA", "resolve6", ["2001:db8::1"], ["2001:db8::1"]],
  ] as const)("writes %s records as a zone file does", async (kind, method, answer, expected) => {
    const resolve = vi.spyOn(dns.Resolver.prototype, method).mockResolvedValue(answer as never)
    expect(await asked(kind)).toMatchObject({ _tag: "Success", success: expected })
    expect(resolve).toHaveBeenCalledWith("a.example")
  })

  it.each([
    ["ENOTFOUND", { _tag: "Success", success: [] }],
    ["ENODATA", { _tag: "Success", success: [] }],
    ["ESERVFAIL", { _tag: "Failure", failure: "silent" }],
    ["ETIMEOUT", { _tag: "Failure", failure: "silent" }],
  ])("distinguishes a missing name from a failed query: %s", async (code, expected) => {
    vi.spyOn(dns.Resolver.prototype, "resolve4").mockRejectedValue(Object.assign(new Error(code), { code }))
    expect(await asked("A")).toMatchObject(expected)
  })

  it("queries the given server instead of the configured ones", () => {
    const given = vi.spyOn(dns.Resolver.prototype, "setServers").mockReturnValue()
    Dns.asking(undefined)
    expect(given).not.toHaveBeenCalled()
    Dns.asking("192.0.2.53")
    expect(given).toHaveBeenCalledWith(["192.0.2.53"])
  })
})
