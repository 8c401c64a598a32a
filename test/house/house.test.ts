/** Rules of the code that the linter cannot check (docs/architecture.md "Where a new capability goes"). */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { circle, folders, imports, root, sources } from "./Imports.ts"

const read = (file: string) => readFileSync(path.join(root, file), "utf8")

interface Cte {
  readonly name: string
  readonly text: string
}

/** Returns the common table expressions in the SQL of a source file. */
const ctesOf = (text: string): ReadonlyArray<Cte> =>
  [...text.matchAll(/\b(\w+)(?:\s*\([\w, ]+\))? as (?:not materialized |materialized )?\(/g)].map(
    ({ 0: head, 1: name, index }) => {
      const from = index + head.length
      let end = from
      for (let depth = 1; depth > 0 && end < text.length; end++)
        depth += text[end] === "(" ? 1 : text[end] === ")" ? -1 : 0
      return { name: name!, text: text.slice(from, end - 1) }
    },
  )

const changes = ({ text }: Cte): boolean => /^\s*(?:--[^\n]*\n\s*)*(?:insert|update|delete)\b/.test(text)

/** What contains the fence, by its name in the code. The expressions `made` and `minted` are of other files. */
const gates = /\$\{(?:gate|owners|allOf\(|sql\(gate\))|where \$\{which\}|\bfrom (?:made|minted)\b/

/** Returns whether SQL reads from one of the expressions. Names of columns, parameters and values do not count. */
const readsFrom = (text: string, names: ReadonlyArray<string>): boolean =>
  new RegExp(String.raw`(?:\b(?:from|join|using)\s+(?:[\w. ]+,\s*)*|\)\s*\w+,\s*)(?:${names.join("|")})\b`).test(text)

/** Returns the Events and audit records of a file as expressions that insert rows for an expression. */
const insertsFor = (text: string): ReadonlyArray<Cte> =>
  [...text.matchAll(/\b((?:raise|auditWrite)\w*)\([^"`]*"(\w+)"/g)].map(([, call, name]) => ({
    name: call!,
    text: `insert from ${name}`,
  }))

/** Returns the expressions that change rows and depend neither on the fence nor on an expression that does. */
const unfenced = (ctes: ReadonlyArray<Cte>): ReadonlyArray<Cte> => {
  const fenced = new Set(["fence"])
  const depends = ({ name, text }: Cte) =>
    gates.test(text) ||
    readsFrom(
      text,
      [...fenced].filter((other) => other !== name),
    )
  for (let before = 0; before < fenced.size;) {
    before = fenced.size
    for (const cte of ctes) if (depends(cte)) fenced.add(cte.name)
  }
  return ctes.filter((cte) => changes(cte) && !depends(cte))
}

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

  it("writes as an actor only under the fence: every part of a statement that changes rows depends on it", () => {
    // The rest of an account and its Events are deleted in batches before the commit, when nobody writes them any more.
    const exempt = ["packages/cluster/src/account/AccountDeletion.ts"]
    const files = sources().filter(
      (file) =>
        file.startsWith("packages/cluster/") && !exempt.includes(file) && /\bcommit(?:Together)?[(<]/.test(read(file)),
    )
    const written = files.map((file) => {
      const text = read(file)
      return [file, [...ctesOf(text), ...insertsFor(text)]] as const
    })
    expect(written.flatMap(([, ctes]) => ctes.filter(changes)).length).toBeGreaterThan(120)
    expect(written.flatMap(([file, ctes]) => unfenced(ctes).map(({ name }) => `${file}: ${name}`))).toEqual([])
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
