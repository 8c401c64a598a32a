// Starts the `svc` command: from its bundle where there is one, from the sources otherwise. Most of what is left of a start
// is compiling what was compiled before, so that is kept beside the packages; where it cannot be written, a start takes
// longer. Plain JavaScript: what strips types takes longer to load than all of this takes to run, and a bundle needs none.
import { enableCompileCache } from "node:module"
import { join } from "node:path"
import { current } from "./Bundle.mjs"

enableCompileCache(join(import.meta.dirname, "..", "..", "..", "node_modules", ".cache", "svc"))
await import(current() ?? "./svc.ts")
