import * as path from "node:path"
import { Context, Effect } from "effect"

/**
 * A folder with bundled entry modules of threads. By default, they are next to the module that starts the thread, or to the
 * bundle that contains it.
 */
export const BundledThreads = Context.Reference<URL | undefined>("@svc/mail-gateway/mail/BundledThreads", {
  defaultValue: () => undefined,
})

/** Returns the entry module with this name for threads of a module. */
export const threadEntry = (name: string, module: string) =>
  Effect.map(BundledThreads, (bundled) =>
    bundled === undefined ? new URL(`./${name}${path.extname(module)}`, module) : new URL(`${name}.mjs`, bundled),
  )
