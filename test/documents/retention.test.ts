import { readFileSync } from "node:fs"
import { capabilities, serviceTables } from "@svc/cluster/capabilities/Capabilities"
import { removals } from "@svc/cluster/housekeeping/Housekeeping"
import { describe, expect, it } from "vitest"

const section = readFileSync("docs/operations.md", "utf8").split("## How long are rows kept?")[1]!.split("\n## ")[0]!
/** The table names of the first column, for each of the three tables in the section. */
const [byAge, withOwner, kept] = section
  .split("| table |")
  .slice(1)
  .map((table) =>
    [...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell]) => cell!.split(", ").map((name) => name.slice(1, -1))),
  ) as [Array<string>, Array<string>, Array<string>]

describe("How long rows are kept (docs/operations.md)", () => {
  it("is stated once for each table of the schema", () => {
    const tables = [serviceTables, ...capabilities.map((one) => one.tables)].flatMap((one) => Object.keys(one))
    expect([...byAge, ...withOwner, ...kept].toSorted()).toEqual(tables.toSorted())
  })

  it("lists the tables that housekeeping deletes from as deleted by age", () => {
    expect(removals.map(({ table }) => table).filter((table) => !byAge.includes(table))).toEqual([])
  })
})
