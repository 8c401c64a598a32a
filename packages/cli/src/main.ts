/**
 * Starts the `svc` command. Most of a start is compiling what was compiled before, so that is kept beside the packages;
 * where it cannot be written, a start takes longer.
 */
import { enableCompileCache } from "node:module"
import * as path from "node:path"

enableCompileCache(path.join(import.meta.dirname, "..", "..", "..", "node_modules", ".cache", "svc"))
await import("./svc.ts")
