/** The operator's commands for keys that rotate: `svc issuer` and `svc dkim`. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { program } from "../harness/Svc.ts"

let directory: string
beforeAll(() => void (directory = mkdtempSync(path.join(tmpdir(), "svc-keys-"))))
afterAll(() => rmSync(directory, { recursive: true }))

const svc = (words: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
  new Promise<{ code: unknown; out: string; err: string }>((resolve) => {
    const env = { PATH: process.env["PATH"], SVC_DATA_DIR: directory, ...more }
    execFile(process.execPath, [program, ...words], { env }, (error, out, err) =>
      resolve({ code: error?.code ?? 0, out, err }),
    )
  })

describe("a command for keys", () => {
  it("prints the keys, creates the first ones, and rotates them", async () => {
    const first = await svc(["issuer"])
    expect(first).toMatchObject({ code: 0, err: "" })
    expect(
      first.out
        .replaceAll(/ {2}\S{43} {2}/g, " KID ")
        .trim()
        .split("\n")
        .toSorted(),
    ).toEqual(["ES256 KID signs", "RS256 KID signs"])
    const rotated = await svc(["issuer", "rotate", "--json"])
    expect(rotated).toMatchObject({ code: 0, err: "" })
    const keys = JSON.parse(rotated.out).keys as ReadonlyArray<{ kid: string; algorithm: string; state: string }>
    expect(keys.map(({ algorithm, state }) => `${algorithm} ${state}`).toSorted()).toEqual([
      "ES256 signing",
      "ES256 waiting",
      "RS256 signing",
      "RS256 waiting",
    ])
    for (const { kid, state } of keys) expect(first.out.includes(kid)).toBe(state === "signing")
    const again = await svc(["issuer"])
    expect(again.out.match(/ published, signs from \d{4}-\d\d-\d\d \d\d:\d\d UTC$/gm)).toHaveLength(2)

    const records = await svc(["dkim"])
    expect(records).toMatchObject({ code: 0, err: "" })
    expect(records.out.match(/^\S+\._domainkey\.mail\.localhost\. {2}TXT {2}\("v=DKIM1; .*"\)$/gm)).toHaveLength(2)
  })

  it("explains in one sentence that the database is unreachable", async () => {
    for (const name of ["issuer", "dkim"]) {
      const { code, out, err } = await svc([name], { DATABASE_URL: "postgres://a:b@127.0.0.1:1/c" })
      expect([code, out]).toEqual([1, ""])
      expect(err).toMatch(/^svc: The database is unreachable \([^\n]*\n$/)
    }
  })
})
