import { availableParallelism } from "node:os"
import * as path from "node:path"
import { defineConfig } from "vitest/config"
import Order from "./test/harness/Order.ts"

// What a worker, a thread of the service in it, or a program of a test compiles is kept for the next one.
process.env["NODE_COMPILE_CACHE"] ??= path.join(import.meta.dirname, "node_modules", ".cache", "compiled")

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "./test/harness/GlobalSetup.ts",
    testTimeout: 30_000,
    hookTimeout: 60_000,
    sequence: { sequencer: Order },
    // A worker's next file finds the modules of the last one read and compiled.
    isolate: false,
    // Most of what tests do is waiting for processes of their own.
    maxWorkers: availableParallelism() + 1,
  },
})
