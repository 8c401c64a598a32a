/** The embedded server with unusual packages, permissions or user accounts. */
import fs, { chmodSync, cpSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import * as os from "node:os"
import * as path from "node:path"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { provide } from "@svc/cluster/store/embedded/Binaries"
import { initialise } from "@svc/cluster/store/embedded/Server"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"

const cpOf = cpSync
let directory: string
beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), "svc-native-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Creates a package as npm unpacks it: binaries, libraries, and a list of links that were not created. */
const installed = (programs: Readonly<Record<string, string>>) => {
  const native = path.join(directory, "package", "native")
  for (const folder of ["bin", "lib"]) mkdirSync(path.join(native, folder), { recursive: true })
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(path.join(native, "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  writeFileSync(path.join(native, "lib", "libpq.so.5.18"), "")
  writeFileSync(
    path.join(native, "pg-symlinks.json"),
    JSON.stringify([{ source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" }]),
  )
  return native
}

describe.skipIf(process.platform === "win32")("an installation", () => {
  const refused = (code: string) => () => {
    throw Object.assign(new Error(code), { code })
  }

  it.each(["EACCES", "EROFS", "EPERM"])("that is read-only (%s) is copied with its links", (code) => {
    const native = installed({ postgres: "exit 0" })
    // A read-only package, as a system's package manager installs it. Permissions do not restrict root.
    for (const folder of ["bin", "lib", ""]) chmodSync(path.join(native, folder), 0o555)
    const home = path.join(directory, "home")
    mkdirSync(home)
    const used = provide(home, {}, native, refused(code))
    expect(used).toBe(path.join(home, "native"))
    expect(lstatSync(path.join(used, "lib", "libpq.so.5")).isSymbolicLink()).toBe(true)
    // The next start uses the existing copy and writes nothing.
    const made = lstatSync(used).ino
    expect(provide(home, {}, native, refused(code))).toBe(used)
    expect(lstatSync(used).ino).toBe(made)
    for (const folder of ["", "bin", "lib"]) chmodSync(path.join(native, folder), 0o755)
  })

  it("is copied once by two processes that start together, and again if the copy cannot run", () => {
    const native = installed({ postgres: "exit 0" })
    const home = path.join(directory, "home")
    const copy = path.join(home, "native")
    mkdirSync(home)
    let first: number | undefined
    // Another process completes its copy while this one copies.
    const copying = vi.spyOn(fs, "cpSync").mockImplementation((from, to, options) => {
      for (const place of [to, copy]) cpOf(from, place, options)
      first = lstatSync(copy).ino
    })
    syncBuiltinESMExports()
    try {
      expect(provide(home, {}, native, refused("EROFS"))).toBe(copy)
      // The copy that the other process may already run stays.
      expect(lstatSync(copy).ino).toBe(first)
    } finally {
      copying.mockRestore()
      syncBuiltinESMExports()
    }
    expect(readdirSync(home)).toEqual(["native"])
    rmSync(path.join(copy, "bin", "postgres"))
    expect(provide(home, {}, native, refused("EROFS"))).toBe(copy)
    expect(lstatSync(copy).ino).not.toBe(first)
    expect(readdirSync(home)).toEqual(["native"])
  })

  it("that has its links is used in place, writable or not", () => {
    const native = installed({ postgres: "exit 0" })
    expect(provide(path.join(directory, "home"), {}, native)).toBe(native)
    expect(provide(path.join(directory, "home"), {}, native, refused("EROFS"))).toBe(native)
  })

  it("names the setting if its directory cannot hold data", async () => {
    const file = path.join(directory, "file")
    writeFileSync(file, "")
    for (const place of [file, path.join(file, "data")]) {
      const opened = Effect.flip(Effect.scoped(EmbeddedPostgres.open({ directory: place })))
      const { message } = await Effect.runPromise(opened)
      expect(message.startsWith(`${place} cannot hold the data (`)).toBe(true)
      expect(message).toMatch(/Set SVC_DATA_DIR to a folder that you can write to\.$/)
    }
  })

  it("fails with instructions for a uid without a user name", () => {
    const native = installed({
      initdb: 'echo "initdb: error: could not look up effective user ID 0: user does not exist" >&2; exit 1',
    })
    mkdirSync(path.join(directory, "home"))
    expect(() => initialise({ home: path.join(directory, "home"), native, account: {}, settings: {} })).toThrow(
      /uid \d+, which has no name on this machine: run as a user that .*DATABASE_URL/,
    )
  })
})
