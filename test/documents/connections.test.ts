/** The documents state how many connections to PostgreSQL a process opens. The code decides it. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { connectionsPerProcess, poolSizes } from "@svc/cluster/store/Database"
import { reserve } from "@svc/cluster/store/ServerFitness"
import { describe, expect, it } from "vitest"

const read = (name: string) => readFileSync(path.join(import.meta.dirname, "..", "..", name), "utf8")
const spread = `${poolSizes.Reads} to read, ${poolSizes.Writes} to write, ${poolSizes.Unhurried} for long work and the feed, ${poolSizes.ClusterSql} of the cluster`

describe("the documents", () => {
  it.each([
    ["docs/settings.md", `A process opens up to ${connectionsPerProcess} connections (${spread})`],
    ["docs/settings.md", `set \`max_connections\` to ${connectionsPerProcess} for each process and ${reserve} more`],
    ["docs/scaling.md", `| connections to PostgreSQL | ${connectionsPerProcess} at most: ${spread}.`],
    ["docs/scaling.md", `\`max_connections\` is ${connectionsPerProcess} for each process and ${reserve} more`],
    ["docs/install.md", `\`max_connections\` of ${connectionsPerProcess} for each process and\n${reserve} more`],
    [
      "docs/operations.md",
      `${connectionsPerProcess} connections for each process; \`max_connections\` should leave ${reserve} more`,
    ],
    ["docs/operations.md", `default_pool_size = ${8 * connectionsPerProcess + reserve}`],
  ])("%s says: %s", (name, sentence) => {
    expect(read(name)).toContain(sentence)
  })

  it("size max_connections for the processes of each row", () => {
    const rows = [
      ...read("docs/scaling.md").matchAll(/^\| ([\d,]+) \| (\d+)\b[^|]* \| [^|]+ \| ([\d,]+) \| [^|]+B \|$/gm),
    ]
    expect(rows).toHaveLength(6)
    for (const [, identities, processes, connections] of rows) {
      expect(`${identities}: ${connections}`).toBe(
        `${identities}: ${(Number(processes) * connectionsPerProcess + reserve).toLocaleString("en")}`,
      )
    }
  })
})
