import { BoundedMap } from "@svc/domain/BoundedMap"
import { describe, expect, it } from "vitest"

describe("BoundedMap", () => {
  it("evicts the entry that was stored longest ago when it is full", () => {
    const map = new BoundedMap<string, number>(2)
    map.set("a", 1).set("b", 2).set("c", 3)
    expect([...map]).toEqual([
      ["b", 2],
      ["c", 3],
    ])
  })

  it("evicts nothing when a key is stored again, and counts that entry as the newest", () => {
    const map = new BoundedMap<string, number>(2)
    map.set("a", 0).set("b", 1).set("b", 2)
    expect([...map.keys()]).toEqual(["a", "b"])
    map.set("a", 3).set("c", 4)
    expect([...map]).toEqual([
      ["a", 3],
      ["c", 4],
    ])
  })
})
