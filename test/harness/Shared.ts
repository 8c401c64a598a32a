/**
 * The services that the test files of a worker share, because each start is expensive: one with the usual settings, and one
 * with a relay for the mail of the console.
 */
import { readFileSync } from "node:fs"

const uses = {
  service: /\b(?:sharedService|startConsole|startPair)\(\)/,
  mail: /\bstartConsoleMail\(\)/,
} as const

export type Shared = keyof typeof uses

/** Returns which of them this test file uses. */
export const sharedBy = (file: string): Shared | undefined => {
  const text = readFileSync(file, "utf8")
  return (Object.keys(uses) as Array<Shared>).find((one) => uses[one].test(text))
}

interface Stops {
  readonly stop: () => Promise<void>
}

const running = new Map<Shared, Promise<Stops>>()

/** Returns the service that runs already, or starts it. */
export const share = <A extends Stops>(what: Shared, start: () => Promise<A>): Promise<A> => {
  const started = (running.get(what) as Promise<A> | undefined) ?? start()
  running.set(what, started)
  return started
}

/** Stops the services that the next file does not use. */
export const stopOthers = async (next: Shared | undefined) => {
  for (const [what, started] of running) {
    if (what === next) continue
    running.delete(what)
    await (await started).stop()
  }
}
