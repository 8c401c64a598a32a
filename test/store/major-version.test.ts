/** A start rejects data of another major version of PostgreSQL. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Effect } from "effect"
import { expect, it } from "vitest"

it("stops a start with instructions, and no database is created", async () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-major-"))
  chmodSync(directory, 0o755)
  try {
    mkdirSync(path.join(directory, "pg17", "data"), { recursive: true })
    writeFileSync(path.join(directory, "pg17", "data", "PG_VERSION"), "17\n")
    const failure = await Effect.runPromise(Effect.flip(Effect.scoped(EmbeddedPostgres.open({ directory }))))
    expect(failure.message).toMatch(
      /holds a database of PostgreSQL 17, and this version brings 18.*svc upgrade-store.*svc backup, svc restore/,
    )
    expect(existsSync(path.join(directory, "pg18"))).toBe(false)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
