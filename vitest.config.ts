import { availableParallelism } from "node:os"
import * as path from "node:path"
import { configDefaults, defineConfig } from "vitest/config"
import Order, { slow } from "./test/harness/Order.ts"
import { patience } from "./test/harness/Eventually.ts"

// Compiled modules are cached for the other workers, threads and programs.
process.env["NODE_COMPILE_CACHE"] ??= path.join(import.meta.dirname, "node_modules", ".cache", "compiled")

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...(process.env["SVC_TESTS"] === "quick" ? slow() : [])],
    reporters: ["default", "./test/harness/Skipped.ts"],
    globalSetup: "./test/harness/GlobalSetup.ts",
    setupFiles: "./test/harness/BeforeFile.ts",
    // Longer than `patience`, so that a condition that is not met is reported before the test times out.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: patience } },
    sequence: { sequencer: Order },
    // A worker's next file finds the modules of the last one read and compiled.
    isolate: false,
    // Tests wait about half of the time, for processes and for timeouts of the product. With two more workers than
    // processors, the processors were idle for a fifth of the time; five more are no faster than three.
    maxWorkers: availableParallelism() + 3,
  },
})
