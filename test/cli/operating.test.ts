/** Operator commands as scripts see them: exit codes, and modes and names of created files. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { layer as masterKeyLayer } from "@svc/cli/serve/MasterKey"
import * as BackupLocation from "@svc/cli/backup/BackupLocation"
import { load } from "@svc/cli/serve/Settings"
import { ConfigProvider, Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { runHere } from "../harness/Commands.ts"
import { databaseLayer } from "../harness/Database.ts"

let home: string
beforeAll(() => {
  home = mkdtempSync(path.join(tmpdir(), "svc-operating-"))
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

describe("svc migrate --check", () => {
  it("exits with 1 while migrations are pending, and with 0 afterwards", async () => {
    const around = { home, env: { SVC_DATA_DIR: path.join(home, "data"), SVC_OPS_PORT: "0" } }
    const before = await runHere(around, "migrate", "--check")
    expect([before.code, before.out]).toEqual([1, expect.stringMatching(/^\d+ migrations? pending:\n {2}\d{4}_/)])
    const run = await runHere(around, "migrate")
    expect([run.code, run.out]).toEqual([0, expect.stringMatching(/^\d+ migrations? run:\n/)])
    expect(await runHere(around, "migrate", "--check")).toMatchObject({ code: 0, out: "The database is up to date.\n" })
  })
})

describe("svc doctor", () => {
  it("exits with 1 for failures, and with 0 for warnings", async () => {
    const settings = (env: Record<string, string>) => runHere({ home, env }, "doctor", "--only", "settings")
    const misspelt = await settings({ SVC_HOSTT: "127.0.0.1" })
    expect([misspelt.code, misspelt.out]).toEqual([0, expect.stringContaining("Did you mean SVC_HOST?")])
    // Without --all, the checks that passed are only counted.
    expect(misspelt.out).not.toMatch(/^ok /m)
    expect(misspelt.out).toMatch(/\d+ of \d+ checks passed \(svc doctor --all lists them\)\.\n$/)
    const colliding = await settings({ SVC_SMTP_PORT: "8080" })
    expect([colliding.code, colliding.out]).toEqual([1, expect.stringContaining("are both 8080")])
  })
})

describe("backups in a folder", () => {
  it("are named by second, listed newest first, and only the oldest beyond the limit are removed", () => {
    const folder = mkdtempSync(path.join(home, "backups-"))
    const names = ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:06Z", "2025-12-31T23:59:59Z"].map((at) =>
      BackupLocation.nameAt(new Date(at)),
    )
    expect(names[0]).toBe("svc-20260102T030405Z.tar.zst")
    for (const name of [...names, "svc-20200101T000000Z.tar.zst.part", "svc-notes.tar.zst"])
      writeFileSync(path.join(folder, name), "")
    const [older, youngest, oldest] = names.map((name) => path.join(folder, name))
    expect(BackupLocation.backupsIn(folder)).toEqual([youngest, older, oldest])
    expect(BackupLocation.prune(folder, 3)).toEqual([])
    expect(BackupLocation.prune(folder, 2)).toEqual([oldest])
    expect(readdirSync(folder)).toHaveLength(4)
    for (const keep of [0, -1]) BackupLocation.prune(folder, keep)
    expect(BackupLocation.backupsIn(folder)).toEqual([youngest])
  })
})

describe("the master key of a data directory", () => {
  it("is created once, readable by its owner only", async () => {
    const dataDirectory = path.join(home, "keys", "data")
    const settings = await Effect.runPromise(
      load.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SVC_DATA_DIR: dataDirectory })))),
    )
    const start = () =>
      Effect.runPromise(
        Effect.scoped(Layer.build(masterKeyLayer(settings).pipe(Layer.provide(Layer.fresh(databaseLayer))))),
      )
    await start()
    const file = path.join(dataDirectory, "master.key")
    const made = readFileSync(file, "utf8")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(Buffer.from(made, "base64")).toHaveLength(32)
    await start()
    expect(readFileSync(file, "utf8")).toBe(made)
  })
})
