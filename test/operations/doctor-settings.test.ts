/** The doctor's findings about settings: exposure, ports, sites, misspelt names and files of secrets. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { exposure, knownNames, masterKey, misspelt, secretFiles, sites } from "@svc/cli/doctor/Configuration"
import type { Finding } from "@svc/cli/doctor/Finding"
import { collisions } from "@svc/cli/doctor/Listeners"
import { load, type Settings } from "@svc/cli/serve/Settings"
import { ConfigProvider, Effect, Option, Redacted } from "effect"
import { describe, expect, it, vi } from "vitest"

const problemsOf = (findings: ReadonlyArray<Finding>) =>
  findings.filter(({ status }) => status !== "ok").map(({ status, detail }) => `${status}: ${detail}`)

describe("the doctor of settings", () => {
  const with_ = (more: Record<string, string>) =>
    Effect.runPromise(load.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(more)))))
  const production = {
    SVC_ENV: "production",
    SVC_MASTER_KEY: Buffer.alloc(32).toString("base64"),
    SVC_BASE_URL: "https://api.example.org",
    SVC_MAIL_DOMAIN: "mail.example.org",
    SVC_TUNNEL_DOMAIN: "tunnel.example.net",
    SVC_MAIL_DIRECT: "true",
    SVC_TRUSTED_PROXIES: "10.0.0.0/8",
  }

  it("reports http links and untrusted proxies in production only", async () => {
    expect(problemsOf(exposure(await with_(production)))).toEqual([])
    expect(problemsOf(exposure(await with_({ SVC_BASE_URL: "http://api.example.org" })))).toEqual([])
    expect(problemsOf(exposure(await with_({ ...production, SVC_TRUSTED_PROXIES: "" })))).toEqual([
      expect.stringMatching(/^warn: SVC_TRUSTED_PROXIES is empty/),
    ])
    expect(problemsOf(exposure(await with_({ ...production, SVC_BASE_URL: "http://api.example.org" })))).toEqual([
      expect.stringMatching(/^fail: SVC_BASE_URL is http:\/\/api.example.org: .*unencrypted$/),
    ])
    expect(problemsOf(exposure(await with_({ ...production, SVC_PROFILE_BASE: "http://id.example.org" })))).toEqual([
      expect.stringMatching(/^fail: SVC_PROFILE_BASE is http:/),
    ])
  })

  it("reports one port for two listeners, unless their addresses differ or the port is not fixed", async () => {
    const found = async (more: Record<string, string>) => problemsOf(collisions(await with_(more)))
    expect(await found({})).toEqual([])
    expect(await found({ SVC_SMTP_PORT: "8080" })).toEqual([
      expect.stringMatching(/^fail: SVC_HTTP_PORT and SVC_SMTP_PORT are both 8080/),
    ])
    // The default of the operators' port is 9090.
    expect(await found({ SVC_EDGE_PORT: "9090" })).toHaveLength(1)
    expect(await found({ SVC_EDGE_PORT: "9090", SVC_OPS_HOST: "127.0.0.2", SVC_ENV: "development" })).toEqual([])
    expect(await found({ SVC_EDGE_PORT: "9090", SVC_OPS_HOST: "0.0.0.0", SVC_ENV: "development" })).toHaveLength(1)
    expect(await found({ SVC_RUNNER_PORT: "0", SVC_OPS_PORT: "0" })).toEqual([])
  })

  it("warns if tunnels share a site with the console", async () => {
    const found = async (baseUrl: string, tunnelDomain: string, environment = "production") =>
      (await Effect.runPromise(sites({ baseUrl, tunnelDomain, environment } as Settings))).map(({ status }) => status)
    expect(await found("https://api.example.org", "tunnel.example.org")).toEqual(["warn"])
    expect(await found("https://api.example.org", "example.org")).toEqual(["warn"])
    expect(await found("https://api.example.org", "example.net")).toEqual(["ok"])
    // These are suffixes under which anybody registers names.
    expect(await found("https://api.github.io", "tunnels.github.io")).toEqual(["ok"])
    expect(await found("https://api.example.org", "tunnel.example.org", "development")).toEqual([])
  })

  it("suggests the nearest name for a variable that is not a setting", async () => {
    vi.stubEnv("SVC_HTTP_PROT", "1")
    vi.stubEnv("SVC_KEY", "svc_admin_x")
    try {
      const all = await Effect.runPromise(misspelt)
      expect(all.filter(({ detail }) => !detail.startsWith("SVC_"))).toEqual([])
      const found = all.filter(({ detail }) => /PROT|SVC_KEY/.test(detail))
      expect(found).toMatchObject([{ status: "warn", remedy: "Did you mean SVC_HTTP_PORT?" }])
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it.each([
    ["2525-2600", 1],
    ["2500-2525", 1],
    ["2526-2600", 0],
    ["2500-2524", 0],
    ["1000-9999", 9],
  ])("finds the listeners among the ports %s of tunnels", async (range, count) => {
    const findings = problemsOf(collisions(await with_({ SVC_EDGE_TCP_PORTS: range, SVC_RUNNER_PORT: "7000" })))
    expect(findings).toHaveLength(count)
    if (count === 1) expect(findings[0]).toMatch(/^fail: SVC_SMTP_PORT is 2525, which is within SVC_EDGE_TCP_PORTS/)
  })

  it("reports secret files that others can read", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "doctor-"))
    try {
      const file = path.join(folder, "master.key")
      writeFileSync(file, "x")
      const known = await Effect.runPromise(knownNames)
      const statuses = (mode: number, name: string) => {
        chmodSync(file, mode)
        return secretFiles(known, { [name]: file, SVC_ARC_KEY_FILE: path.join(folder, "missing") }).map(
          ({ status, remedy }) => [status, remedy],
        )
      }
      expect(statuses(0o600, "SVC_MASTER_KEY_FILE")).toEqual([])
      expect(statuses(0o640, "SVC_MASTER_KEY_FILE")).toEqual([])
      expect(statuses(0o644, "SVC_MASTER_KEY_FILE")).toEqual([["fail", `chmod o-rwx ${file}`]])
      expect(statuses(0o604, "DATABASE_URL_FILE")).toEqual([["warn", `chmod o-rwx ${file}`]])
      expect(statuses(0o644, "SVC_EDGE_TLS_KEY")).toHaveLength(1)
      expect(statuses(0o602, "SVC_EDGE_TLS_KEY")).toHaveLength(1)
      // No other account may read the key file.
      const own = async (mode: number) => {
        chmodSync(file, mode)
        return (await Effect.runPromise(masterKey({ ...(await with_({})), dataDirectory: folder }))).status
      }
      expect([await own(0o600), await own(0o640), await own(0o604)]).toEqual(["ok", "warn", "warn"])
      rmSync(file)
      const without = async (more: object) =>
        (await Effect.runPromise(masterKey({ ...(await with_({})), dataDirectory: folder, ...more }))).status
      // A key is created at the first start only: other data was sealed with the missing one.
      expect(await without({})).toBe("ok")
      expect(await without({ databaseUrl: Option.some(Redacted.make("postgres://x")) })).toBe("fail")
      mkdirSync(path.join(folder, "pg18"))
      expect(await without({})).toBe("fail")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
