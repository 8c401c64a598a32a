/** Limits of tool results for messages and conversations, and how to read the rest. */
import { encode, slice } from "@svc/api/mail/TextSlice"
import { bounded, contentBytes } from "@svc/api/mcp/BoundedResult"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

const bytes = (text: string) => new TextEncoder().encode(text).length
// oxlint-disable-next-line typescript/no-explicit-any -- what the tool answers
const get = (input: object, body: object): any => bounded("svc_email_get", input, body)
/** The maximum content of a result in bytes. */
const contentOf = ({ text_reply, text, html, links = [], headers = [] }: Record<string, any>) =>
  [text_reply, text, html].reduce((sum, one) => sum + (typeof one === "string" ? bytes(one) : 0), 0) +
  [...links, ...headers].reduce((sum: number, one: object) => sum + bytes(JSON.stringify(one)), 0)

const headers = Array.from({ length: 60 }, (_, at) => ({ name: `X-Header-${at}`, value: "v".repeat(400) }))
const links = Array.from({ length: 100 }, (_, at) => ({
  url: `https://example.org/${"p".repeat(300)}/${at}`,
  text: "t",
  deceptive: false,
}))
const small = {
  id: "msg_1",
  text_reply: "Yes.",
  text: "Yes.\n\n> Will you come?",
  html: "<p>Yes.</p>",
  links: [{ url: "https://example.org/", text: "here", deceptive: false }],
  headers: [{ name: "Subject", value: "Re: come?" }],
}

describe("A slice of text", () => {
  const text = encode("aé\u{1f600}b")
  it.each([
    [0, 1, "a", 1],
    [0, 2, "a", 1],
    [0, 3, "aé", 3],
    [1, 2, "é", 3],
    // An offset within a character begins with the character, and a limit below one character returns it whole.
    [2, 2, "é", 3],
    [2, 1, "é", 3],
    [5, 4, "\u{1f600}", 7],
    [3, 1, "\u{1f600}", 7],
    [3, 0, "", 3],
    [7, 9, "b", 8],
    [8, 9, "", 8],
    [99, 9, "", 8],
  ])("from byte %i of at most %i bytes is %j", (from, limit, shown, end) => {
    expect(slice(text, from, limit)).toEqual({ text: shown, end, size: bytes(shown) })
  })
})

describe("svc_email_get", () => {
  it("returns a small message whole with its HTML and headers", () => {
    expect(get({}, small)).toEqual({ ...small, truncated: false })
  })

  it("returns null for a message without text", () => {
    expect(get({}, { ...small, text: null, text_reply: null })).toMatchObject({ text: null, text_reply: null })
  })

  it("omits HTML and headers on request", () => {
    expect(Object.keys(get({ html: false, headers: false }, small))).toEqual([
      "id",
      "text_reply",
      "text",
      "links",
      "truncated",
    ])
  })

  it("returns at most 16 KiB of a message of 106 kB, the author's own text first", () => {
    const text = "ä".repeat(53_000)
    const given = get({}, { ...small, text_reply: text, text, html: `<p>${text}</p>`, headers })
    expect(contentOf(given)).toBeLessThanOrEqual(contentBytes)
    expect(given.text_reply).toBe("ä".repeat(contentBytes / 2))
    expect([given.text, given.html, given.links, given.headers, given.truncated]).toEqual(["", "", [], [], true])
    expect(given.left_out[0]).toEqual({
      member: "text_reply",
      bytes: 106_000 - contentBytes,
      how: 'Call again with part "text" and text_offset 16384.',
    })
    expect(given.left_out.map(({ member }: any) => member)).toEqual(["text_reply", "text", "html", "links", "headers"])
  })

  it("does not repeat `text_reply` in the text if there is no room for both", () => {
    const text_reply = "r".repeat(10_000)
    const given = get({}, { ...small, text_reply, text: `${text_reply}${"q".repeat(20_000)}` })
    expect([given.text_reply, given.text, given.html]).toEqual([text_reply, "", small.html])
    const on = get({ part: "text", text_offset: 10_000 }, { ...small, text: `${text_reply}${"q".repeat(20_000)}` })
    expect(on.text).toBe("q".repeat(contentBytes))
  })

  it.each([
    ["an own text at the beginning", 100, true],
    ["an own text that leaves no room for the rest", 10_000, true],
    ["an own text that is longer than a result", 40_000, true],
    ["an own text elsewhere", 10_000, false],
  ])("gives the whole text to a caller that reads on: %s", (_, size, begins) => {
    const text_reply = Array.from({ length: size / 10 }, (_, at) => `r${at}`.padEnd(9, "ä").slice(0, 9)).join(" ")
    const rest = Array.from({ length: 3_000 }, (_, at) => `q${at}`.padEnd(9, ".")).join(" ")
    const body = { ...small, text_reply, text: begins ? `${text_reply} ${rest}` : `${rest} ${text_reply}` }
    const offsetOf = ({ left_out = [] }: any, member: string) => {
      const found = left_out.find((one: any) => one.member === member && one.how.includes('part "text"'))
      return found === undefined ? undefined : Number(/text_offset (\d+)/.exec(found.how)![1])
    }
    const first = get({}, body)
    let read: string = first.text
    if (first.text === "") read = first.text_reply
    let at = offsetOf(first, "text")
    for (let calls = 0; at !== undefined && calls < 20; calls++) {
      const next = get({ part: "text", text_offset: at }, body)
      read += next.text
      at = offsetOf(next, "text")
    }
    expect(read).toBe(body.text)
  })

  it("limits HTML to 4 KiB and headers to 2 KiB beside a short text", () => {
    const given = get({}, { ...small, html: "h".repeat(9000), headers })
    expect([given.html.length, given.headers.length]).toEqual([4096, 4])
    expect(given.left_out).toEqual([
      { member: "html", bytes: 4904, how: 'Call again with part "html" and text_offset 4096.' },
      { member: "headers", bytes: expect.any(Number), how: expect.stringContaining('part "headers"') },
    ])
  })

  it.each(["text", "html", "links", "headers"])("says how to continue until the whole %s is read", (part) => {
    const body = { ...small, text: "tä".repeat(20_000), html: "h€".repeat(15_000), headers, links }
    const read: Array<any> = []
    let at: number | undefined = 0
    for (let calls = 0; at !== undefined && calls < 20; calls++) {
      const given = get({ part, text_offset: at }, body)
      expect(Object.keys(given)).toEqual(expect.arrayContaining(["id", part]))
      expect(contentOf(given)).toBeLessThanOrEqual(contentBytes)
      read.push(given[part])
      const [remaining] = given.left_out ?? []
      at = remaining === undefined ? undefined : Number(/text_offset (\d+)/.exec(remaining.how)![1])
    }
    expect(part === "headers" || part === "links" ? read.flat() : read.join("")).toEqual(
      body[part as keyof typeof body],
    )
  })

  it("fills the limit with whole links, and begins a long one with the next call", () => {
    const [link] = links
    const size = bytes(JSON.stringify(link))
    const long = { ...link!, url: "u".repeat(40_000) }
    const body = { ...small, links: [link!, link!, long] }
    expect(get({ part: "links", text_limit: 2 * size }, body)).toMatchObject({
      links: [link, link],
      left_out: [{ how: `Call again with part "links" and text_offset ${2 * size}.` }],
    })
    expect(get({ part: "links", text_limit: 2 * size - 1 }, body).links).toEqual([link])
    expect(get({ part: "links", text_offset: 2 * size }, body).links).toMatchObject([{ cut: true }])
  })

  it("gives links and header fields the space that the text leaves", () => {
    const given = get({}, { ...small, text_reply: null, text: "x".repeat(13_500), html: null, links, headers })
    expect(given.links.length).toBeGreaterThan(0)
    expect(contentOf(given)).toBeLessThanOrEqual(contentBytes)
  })

  it("gets past a header field that is longer than a result", () => {
    const body = { ...small, headers: [{ name: "X-Long", value: "v".repeat(40_000) }, headers[0]!] }
    const first = get({ part: "headers" }, body)
    expect(first.headers).toEqual([{ name: "X-Long", value: "v".repeat(contentBytes), cut: true }])
    const at = Number(/text_offset (\d+)/.exec(first.left_out[0].how)![1])
    expect(get({ part: "headers", text_offset: at }, body)).toMatchObject({ headers: [headers[0]], truncated: false })
  })

  it("never returns more than 16 KiB, whatever limit is given, and at least one character", () => {
    const body = { ...small, text_reply: null, text: "€".repeat(30_000) }
    expect(bytes(get({ text_limit: 1_000_000 }, body).text)).toBeLessThanOrEqual(contentBytes)
    expect(get({ text_limit: 1 }, body).text).toBe("€")
  })

  it("lists at most 25 recipients of each kind", () => {
    const to = Array.from({ length: 300 }, (_, at) => ({ address: `a${at}@example.org`, name: null }))
    const given = get({}, { ...small, to })
    expect(given.to).toHaveLength(25)
    expect(given.left_out).toMatchObject([{ member: "to", how: "Of 300 entries the first 25 are here; REST has all." }])
  })
})

describe("svc_thread_get", () => {
  const shares = (sizes: ReadonlyArray<number>): any =>
    bounded(
      "svc_thread_get",
      {},
      {
        thread: {},
        messages: sizes.map((size, at) => ({ id: `msg_${at}`, text_reply: "x".repeat(size) })),
        next_cursor: null,
      },
    )

  it("returns short messages whole and shares the rest of 16 KiB between long ones", () => {
    const given = shares([100, 30_000, 200, 30_000])
    const lengths = given.messages.map(({ text_reply }: any) => text_reply.length)
    expect(lengths).toEqual([100, 8042, 200, 8042])
    expect(given.left_out).toMatchObject([
      { member: "messages/1/text_reply", bytes: 30_000 - 8042 },
      { member: "messages/3/text_reply", bytes: 30_000 - 8042 },
    ])
    expect(shares(Array(50).fill(4000)).messages.every(({ text_reply }: any) => text_reply.length === 327)).toBe(true)
  })

  it("lists at most 25 recipients of each message", () => {
    const to = Array.from({ length: 27 }, (_, at) => ({ name: null, address: `a${at}@example.org` }))
    const body = { thread: {}, messages: [{ id: "msg_0", text_reply: "x", to }], next_cursor: null }
    const given: any = bounded("svc_thread_get", {}, body)
    expect(given.messages[0].to).toEqual(to.slice(0, 25))
    expect(given.left_out).toMatchObject([{ member: "to" }])
  })

  it("returns a conversation whole if it fits", () => {
    expect(shares([4000, 4000, 4000])).toMatchObject({ truncated: false })
    expect(shares([contentBytes])).toMatchObject({ truncated: false })
    expect(shares([contentBytes + 1])).toMatchObject({ truncated: true })
  })
})

describe("Arguments of svc_email_get", () => {
  let service: TestService
  let session: string
  let handle: string
  beforeAll(async () => {
    service = await sharedService()
    session = (await signUp(service.base)).session
    handle = (await makeIdentity(service.base, session)).handle
  })

  it("are validated", async () => {
    const ask = async (input: object) => {
      const args = { handle, id: `msg_${"0".repeat(26)}`, ...input }
      const params = { name: "svc_email_get", arguments: args }
      const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params }
      return (await call(service.base, "POST", "/api/mcp", { token: session, body })).body.result.structuredContent
    }
    expect((await ask({ html: "yes" })).errors).toEqual([{ path: "/html", message: "expected true or false" }])
    expect((await ask({ part: "subject" })).errors[0].message).toBe("expected one of text, html, links, headers")
    for (const wrong of [{ text_limit: 0 }, { text_offset: -1 }, { text_offset: 1.5 }])
      expect((await ask(wrong)).code).toBe("invalid_request")
    // Older clients request more than a result may have.
    expect((await ask({ html: true, text_limit: 1_048_576 })).code).toBe("not_found")
  })
})
