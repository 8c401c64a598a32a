/**
 * Orders the test files: those that share a service first, then large files, as in Vitest, with files that mostly wait
 * spread out. Reports the slow files.
 */
import { globSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { type Shared, sharedBy } from "./Shared.ts"

/** The first run downloads its packages at the same time. */
const long = "/connectors/bluesky.test.ts"
/**
 * Files that mostly wait for timeouts of the product, longest first. If all workers ran such files together, the
 * machine would be idle.
 */
const waiting = [
  "tunnel/edges",
  "mail/submission/submission",
  "cli/account",
  "mail/imap/conversation",
  "store/silence",
  "mail/gateways",
  "audit/faults",
  "mail/imap/offlineimap",
  "sending/composing",
  "access/doors",
  "mail/sending/round",
  "http/leaving",
  "mail/imap/terminals",
  "mail/judging",
  "http/late-bodies",
  "tunnel/tls",
  "net/certificates",
  "tunnel/link",
  "cluster/proof",
  "tunnel/hiccup",
  "operations/metrics",
].map((name) => `/${name}.test.ts`)

/** Files that keep a processor busy for more than six seconds. */
const busy = [
  "api/account",
  "api/clients",
  "api/credentials",
  "api/openapi",
  "api/properties",
  "api/scopes",
  "mail/reception",
  "mail/repeats",
  "oauth/ends",
  "operations/backup",
  "operations/restore",
  "sending/round",
  "store/embedded",
].map((name) => `/${name}.test.ts`)

const root = path.join(import.meta.dirname, "..", "..")
const starts =
  /harness\/(?:Browser|Checkout|Console\w*|Deployment|Packages|Programs|Svc)\.ts|\/(?:bench|faults|network)\//

/** Returns whether a test file starts a browser, another program or processes of the service. */
export const startsProcesses = (file: string): boolean => starts.test(readFileSync(path.join(root, file), "utf8"))

/** Returns the files that `npm run test:quick` omits: browsers, other programs, kills, and long waits. */
export const slow = (): ReadonlyArray<string> =>
  globSync("test/**/*.test.ts", { cwd: root }).filter(
    (file) => [long, ...waiting, ...busy].some((name) => file.endsWith(name)) || startsProcesses(file),
  )

/** Number of other files between two waiting ones: two workers run them in about the time of one waiting file. */
const between = 9

const services: ReadonlyArray<Shared | undefined> = ["service", "mail", undefined]
/** Puts files that share a service next to each other, so that each worker starts it once. */
const sharingFirst = (files: ReadonlyArray<TestSpecification>) => {
  const place = new Map(files.map((file) => [file, services.indexOf(sharedBy(file.moduleId))]))
  return files.toSorted((a, b) => place.get(a)! - place.get(b)!)
}

export default class Order extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const named = (name: string) => sorted.filter(({ moduleId }) => moduleId.endsWith(name))
    const apart = new Set([long, ...waiting].flatMap(named))
    const others = sharingFirst(sorted.filter((file) => !apart.has(file)))
    const spread = sharingFirst(waiting.flatMap(named)).flatMap((file) => [...others.splice(0, between), file])
    return [...spread, ...others].toSpliced(sorted.length / 4, 0, ...named(long))
  }
}
