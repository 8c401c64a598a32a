import * as path from "node:path"
import { Context, Effect } from "effect"

/**
 * The folder with the bundled entry modules of threads, for a process that runs from the sources: a bundled thread starts in
 * a quarter of the time. If it is not set, the entry module is next to the module that starts the thread, or next to the bundle
 * that contains this module.
 */
export const BundledThreads = Context.Reference<URL | undefined>("@svc/mail-gateway/mail/BundledThreads", {
  defaultValue: () => undefined,
})

/** Returns the URL of the entry module `name` for a thread that `module` (the URL of a module) starts. */
export const threadEntry = (name: string, module: string) =>
  Effect.map(BundledThreads, (bundled) =>
    bundled === undefined ? new URL(`./${name}${path.extname(module)}`, module) : new URL(`${name}.mjs`, bundled),
  )
