/** Which file runs when: as Vitest has it (large ones first), but for those that take longer than their size says. */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** It takes a minute, and waits for packages of its own, which the first run fetches meanwhile. */
const long = "connectors/bluesky.test.ts"
/** They wait for what has its time in the product: a worker that comes to one last would keep the run from its end. */
const waiting = [
  "access/doors",
  "audit/faults",
  "cluster/proof",
  "http/late-bodies",
  "http/leaving",
  "mail/kill",
  "net/certificates",
  "operations/metrics",
  "sending/composing",
  "store/silence",
  "tunnel/hiccup",
  "tunnel/tls",
].map((name) => `/${name}.test.ts`)

export default class Order extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const [longest, early] = [[long], waiting].map((names) =>
      sorted.filter(({ moduleId }) => names.some((name) => moduleId.endsWith(name))),
    ) as [typeof sorted, typeof sorted]
    const others = sorted.filter((file) => !longest.includes(file) && !early.includes(file))
    const spread = early.flatMap((file, at) => [...others.slice(at * 3, at * 3 + 3), file])
    return [...spread, ...others.slice(early.length * 3)].toSpliced(sorted.length / 4, 0, ...longest)
  }
}
