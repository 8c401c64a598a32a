import { availableParallelism } from "node:os"
import * as path from "node:path"
import { configDefaults, defineConfig } from "vitest/config"
import Order, { slow } from "./test/harness/Order.ts"
import { patience } from "./test/harness/Patience.ts"

// What a worker, a thread of the service in it, or a program of a test compiles is kept for the next one.
process.env["NODE_COMPILE_CACHE"] ??= path.join(import.meta.dirname, "node_modules", ".cache", "compiled")

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...(process.env["SVC_TESTS"] === "quick" ? slow() : [])],
    reporters: ["default", "./test/harness/Skipped.ts"],
    globalSetup: "./test/harness/GlobalSetup.ts",
    // Longer than a test waits for a condition, which reports what is missing. A busy machine can be ten times slower.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: patience } },
    sequence: { sequencer: Order },
    // A worker's next file finds the modules of the last one read and compiled.
    isolate: false,
    // Half of what tests do is waiting, for processes of their own and for what has its time in the product: with two more
    // workers than processors, a fifth of the processors' time was still idle.
    maxWorkers: availableParallelism() + 3,
  },
})
