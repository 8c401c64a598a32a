/** Rules of the code that the linter cannot check (docs/architecture.md "Where a new capability goes"). */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { circle, folders, imports, root, sources } from "./Imports.ts"

const read = (file: string) => readFileSync(path.join(root, file), "utf8")

describe("the source code", () => {
  it("has no import cycle between folders or packages", () => {
    expect(circle(folders(sources()))).toBeUndefined()
    const packages = new Map<string, Set<string>>()
    for (const file of sources()) {
      const from = file.split("/")[1]!
      if (!file.startsWith("packages/")) continue
      const leads = packages.get(from) ?? new Set()
      packages.set(from, leads)
      for (const to of imports(file)) if (to.split("/")[1] !== from) leads.add(to.split("/")[1]!)
    }
    expect(circle(packages)).toBeUndefined()
  })

  it("has no import cycle between files", () => {
    expect(circle(new Map(sources().map((file) => [file, new Set(imports(file))])))).toBeUndefined()
  })

  it("has no file above 350 lines", () => {
    const long = sources().filter((file) => read(file).split("\n").length > 351)
    expect(long).toEqual([])
  })

  it("checks the fence of a write in one place", () => {
    const asking = sources().filter(
      (file) => file.startsWith("packages/") && /select from fence\) as owned/.test(read(file)),
    )
    expect(asking).toEqual(["packages/cluster/src/actor/Write.ts"])
  })

  it("inserts Events in one place", () => {
    const inserting = sources().filter((file) => file.startsWith("packages/") && /insert into event\b/.test(read(file)))
    expect(inserting).toEqual(["packages/cluster/src/events/Raise.ts"])
  })

  it("starts `svc` without the modules of the service, which take longer to load than most commands take", () => {
    const loaded = new Set(["packages/cli/src/svc.ts"])
    for (const file of loaded) {
      const text = read(file).replaceAll(/^(?:import|export) type [^;]*?from .*$|\bimport\(.*\)/gm, "")
      for (const to of imports(file, text)) loaded.add(to)
    }
    expect([...loaded].filter((file) => !file.startsWith("packages/cli/")).toSorted()).toEqual([
      "packages/cluster/src/Timing.ts",
      "packages/cluster/src/observe/Redaction.ts",
      "packages/domain/src/Phrases.ts",
      "packages/domain/src/Version.ts",
      "packages/domain/src/Versions.ts",
      "packages/domain/src/events/EventSentences.ts",
    ])
  })

  it("keeps the work loop and the fence independent of capabilities", () => {
    const graph = folders(sources())
    expect([...graph.get("cluster/work")!].toSorted()).toEqual([
      "cluster/Timing.ts",
      "cluster/actor",
      "cluster/observe",
      "cluster/store",
      "domain/MonotonicTime.ts",
      "domain/actor",
      "domain/problems",
    ])
    expect(
      [...graph.get("cluster/actor")!].filter((to) => /cluster\/(card|mail|tunnel|webhooks|identity|account)/.test(to)),
    ).toEqual([])
  })
})

describe("the cycle detection", () => {
  it("finds a cycle", () => {
    const graph = new Map([
      ["a", new Set(["b"])],
      ["b", new Set(["c"])],
      ["c", new Set(["b"])],
    ])
    expect(circle(graph)).toEqual(["b", "c", "b"])
  })
})
