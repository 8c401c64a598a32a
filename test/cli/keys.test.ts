/** The operator's commands for keys that rotate: `svc issuer` and `svc dkim`. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { runHere } from "../harness/Commands.ts"
import { copy, preparedName } from "../harness/TestServers.ts"

let directory: string
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "svc-keys-"))
  // The database's user must be able to traverse it.
  chmodSync(directory, 0o755)
  copy(process.env[preparedName]!, directory)
})
afterAll(() => rmSync(directory, { recursive: true }))

const svc = (words: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
  runHere({ home: directory, env: { SVC_DATA_DIR: directory, ...more } }, ...words)

describe("a command for keys", () => {
  it("prints the keys, creates the first ones, and rotates them by the clock of the store", async () => {
    const first = await svc(["issuer"])
    expect(first).toMatchObject({ code: 0, errors: "" })
    expect(
      first.out
        .replaceAll(/ {2}\S{43} {2}/g, " KID ")
        .trim()
        .split("\n")
        .toSorted(),
    ).toEqual(["ES256 KID signs", "RS256 KID signs"])
    // New keys would sign immediately if the wait began two days ago.
    vi.setSystemTime(Date.now() - 2 * 24 * 3_600_000)
    const rotated = await svc(["issuer", "rotate", "--json"])
    vi.useRealTimers()
    expect(rotated).toMatchObject({ code: 0, errors: "" })
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
    expect(records).toMatchObject({ code: 0, errors: "" })
    expect(records.out.match(/^\S+\._domainkey\.mail\.localhost\. {2}TXT {2}\("v=DKIM1; .*"\)$/gm)).toHaveLength(2)
  })

  it("explains in one sentence that the database is unreachable", async () => {
    for (const name of ["issuer", "dkim"]) {
      const { code, out, errors } = await svc([name], { DATABASE_URL: "postgres://a:b@127.0.0.1:1/c" })
      expect([code, out]).toEqual([1, ""])
      expect(errors).toMatch(/^svc: The database is unreachable \([^\n]*\n$/)
    }
  })
})
