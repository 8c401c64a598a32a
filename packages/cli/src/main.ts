/**
 * Starts the `svc` command: from its bundle where there is one, from the sources otherwise. Most of what is left of a
 * start is compiling what was compiled before, so that is kept beside the packages; where it cannot be written, a start
 * takes longer.
 */
import { enableCompileCache } from "node:module"
import * as path from "node:path"
import { current } from "./Bundle.mjs"

enableCompileCache(path.join(import.meta.dirname, "..", "..", "..", "node_modules", ".cache", "svc"))
await import(current() ?? "./svc.ts")
