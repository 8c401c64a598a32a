import { pretty } from "@svc/cli/tools/Print"
import { describe, expect, it } from "vitest"

describe("formatted output", () => {
  it("is a table for a list", () => {
    const text = pretty({
      secrets: [
        { name: "a", size: 12, tags: ["x"] },
        { name: "long.name", size: 3 },
      ],
      next_cursor: "c",
    })
    expect(text).toBe("NAME       SIZE\na          12\nlong.name  3\nMore with --cursor c")
    expect(pretty({ messages: [], next_cursor: null })).toBe("There are no messages.")
    expect(pretty({ records: [{ id: "a" }], after: "x" })).toBe("ID\na\nContinue with --after x")
  })

  it("cuts a cell at 60 characters, and the last one of a line at 160", () => {
    const [, line] = pretty({ rows: [{ one: "a".repeat(200), two: "b".repeat(200) }] }).split("\n")
    expect(line).toBe(`${"a".repeat(59)}…  ${"b".repeat(159)}…`)
  })

  it("is names and values for a single resource", () => {
    expect(pretty({ handle: "ada", tunnel: { port: null, urls: ["u"] }, saga: { steps: [{ name: "card" }] } })).toBe(
      'handle: ada\ntunnel:\n  port: -\n  urls: ["u"]\nsaga:\n  steps:\n    NAME\n    card',
    )
    expect(pretty({})).toBe("Done.")
    expect(pretty({ text: "a\nb" })).toBe("text:\n  a\n  b")
  })

  it("fits into the terminal, with whole ids, and is not cut for a file", () => {
    const body = { messages: [{ id: "msg_0123456789abcdef", subject: "s".repeat(50), from: "f".repeat(40) }] }
    const [wide] = pretty(body).split("\n").slice(1)
    expect(wide).toBe(`msg_0123456789abcdef  ${"s".repeat(50)}  ${"f".repeat(40)}`)
    const { isTTY, columns } = process.stdout
    Object.assign(process.stdout, { isTTY: true, columns: 60 })
    try {
      const [line] = pretty(body).split("\n").slice(1)
      expect(line).toBe(`msg_0123456789abcdef  ${"s".repeat(17)}…  ${"f".repeat(17)}…`)
    } finally {
      Object.assign(process.stdout, { isTTY, columns })
    }
  })

  it("escapes control characters of foreign text", () => {
    expect(pretty({ subject: "\u001b]0;owned\u0007\u009b2J" })).toBe("subject: \ufffd]0;owned\ufffd\ufffd2J")
    expect(pretty({ messages: [{ subject: "\u001b[2J" }] })).not.toContain("\u001b")
  })
})
