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

  it("shows each kind of value in a cell", () => {
    const cell = (value: unknown) => pretty({ rows: [{ at: value }] }, ["at"]).split("\n")[1]
    const cells: ReadonlyArray<readonly [unknown, string]> = [
      [true, "yes"],
      [false, "no"],
      ["2026-11-26T12:00:00.123Z", "2026-11-26 12:00:00Z"],
      ["on 2026-11-26T12:00:00Z", "on 2026-11-26T12:00:00Z"],
      [[], "-"],
      [["a", 1], "a 1"],
      [[{ address: "a@example.org" }], "a@example.org"],
      [[{ address: "a@example.org" }, { address: "b@example.org" }, {}], "a@example.org +2"],
      [[{ id: 1 }, { id: 2 }], "2"],
      [{ address: "a@example.org", name: "A" }, "a@example.org"],
      [{ name: "A" }, '{"name":"A"}'],
      [null, "-"],
      [undefined, "-"],
      ["two\n lines", "two lines"],
    ]
    expect(cells.map(([value]) => cell(value))).toEqual(cells.map(([, text]) => text))
    // A column is a path; without columns, the first seven members that are neither lists nor objects.
    expect(pretty({ rows: [{ a: { b: "c" } }, { a: 1 }, {}] }, ["a.b"])).toBe("B\nc\n-\n-")
    const event = { type: "identity.deleted", handle: "ada", data: {} }
    expect(pretty({ events: [event] }, ["what"])).toBe("WHAT\nada was deleted")
    const wide = Object.fromEntries("abcdefghi".split("").map((name, at) => [name, at === 1 ? ["x"] : at]))
    expect(pretty({ rows: [wide] })).toBe("A  C  D  E  F  G  H\n0  2  3  4  5  6  7")
    // More than one list, or a member beside the list, is shown by its name.
    expect(pretty({ a: [1], b: [2] })).toBe("a: [1]\nb: [2]")
    expect(pretty({ rows: [{ id: 1 }], total: 7 })).toBe("rows:\n  ID\n  1\ntotal: 7")
    expect([pretty("text"), pretty([1]), pretty(null)]).toEqual(["text", "[1]", "-"])
  })

  it("cuts a cell at 60 characters, and the last one of a line at 160", () => {
    const [, line] = pretty({ rows: [{ one: "a".repeat(200), two: "b".repeat(200) }] }).split("\n")
    expect(line).toBe(`${"a".repeat(59)}…  ${"b".repeat(159)}…`)
  })

  it("is a line per time for series, with the Identity or Webhook of a column", () => {
    const points = (value: number) => [{ at: "2026-11-26T12:00:00Z", value }]
    const series = [
      { metric: "activity", identity: "ada", webhook_id: null, points: points(1) },
      { metric: "deliveries", identity: "ada", webhook_id: "wh_1", points: points(2) },
      { metric: "mail_sent", identity: "ada", webhook_id: null, points: points(3) },
      { metric: "mail_refused", identity: null, webhook_id: null, points: [] },
    ]
    expect(pretty({ series }).split("\n")).toEqual([
      "AT                    ACTIVITY ADA  DELIVERIES WH_1  MAIL_SENT",
      "2026-11-26 12:00:00Z  1             2                3",
    ])
    expect(pretty({ series: [] })).toBe("There was no activity.")
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
      const address = "a".repeat(30)
      const names = pretty({ rows: [{ handle: "h".repeat(30), to_address: address, note: "n".repeat(40) }] })
      expect(names.split("\n")[1]).toBe(`${"h".repeat(30)}  ${address}  nnnnnnn…`)
      // A line of exactly the terminal's width is not cut, and no column becomes narrower than eight characters.
      const exact = pretty({ rows: [{ a: "x".repeat(29), b: "y".repeat(29) }] }).split("\n")[1]
      expect(exact).toBe(`${"x".repeat(29)}  ${"y".repeat(29)}`)
      const seven = { rows: [Object.fromEntries("abcdefg".split("").map((name) => [name, name.repeat(20)]))] }
      expect(pretty(seven).split("\n")[1]).toBe(
        "abcdefg"
          .split("")
          .map((name) => `${name.repeat(7)}…`)
          .join("  "),
      )
    } finally {
      Object.assign(process.stdout, { isTTY, columns })
    }
  })

  it("escapes control characters of foreign text", () => {
    expect(pretty({ subject: "\u001b]0;owned\u0007\u009b2J" })).toBe("subject: \ufffd]0;owned\ufffd\ufffd2J")
    expect(pretty({ messages: [{ subject: "\u001b[2J" }] })).not.toContain("\u001b")
  })
})
