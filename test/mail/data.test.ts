/** The result of DATA, however the network splits it. */
import * as Data from "@svc/mail-gateway/mail/smtp/Data"
import { describe, expect, it } from "@effect/vitest"
import { createHash } from "node:crypto"

const letter = Buffer.from("From: ada@example.org\r\nSubject: pieces\r\n\r\nOne line.\r\nAnother.\r\n")
const digest = new Uint8Array(createHash("sha256").update(letter).digest())

describe("Message data", () => {
  for (const pieces of [1, 2, 3, letter.length]) {
    it(`is the same with the same hash in ${pieces} ${pieces === 1 ? "piece" : "pieces"}`, () => {
      const data = Data.make(1024)
      const each = Math.ceil(letter.length / pieces)
      for (let at = 0; at < letter.length; at += each) data.push(letter.subarray(at, at + each))
      const received = data.finish()
      expect(typeof received === "string" ? received : received.raw.equals(letter)).toBe(true)
      expect(received).toMatchObject({ sha256: digest })
    })
  }

  it("is the same with the same hash above 1 MiB, in pieces below and above it", () => {
    const large = Buffer.from(
      Array.from({ length: 25_000 }, (_, n) => `${n}`.padEnd(98, "x"))
        .join("\r\n")
        .concat("\r\n"),
    )
    const sha256 = new Uint8Array(createHash("sha256").update(large).digest())
    for (const each of [large.length, 1_500_000, 700_000, 64 * 1024]) {
      const data = Data.make(10_000_000)
      for (let at = 0; at < large.length; at += each) data.push(large.subarray(at, at + each))
      const received = data.finish()
      expect(typeof received === "string" ? received : received.raw.equals(large), `${each}`).toBe(true)
      expect(received).toMatchObject({ sha256 })
    }
  })

  it.each(["a\r\n", `${"a".repeat(200)}\r\n`])("is rejected for a lone CR or LF, in lines like %j", (line) => {
    const flawOf = (text: string, each: number) => {
      const data = Data.make(100_000)
      const raw = Buffer.from(text)
      for (let at = 0; at < raw.length; at += each) data.push(raw.subarray(at, at + each))
      const received = data.finish()
      return typeof received === "string" ? received : undefined
    }
    const before = line.repeat(20)
    for (let each = 1; each < 12; each++) {
      expect(flawOf(`${before}x\r\n\r\ny\r\n${before}`, each)).toBe(undefined)
      for (const alone of ["\n", "\r", "\r\r\n", "\n\r\n", "\r\n\n", "\r\n\r"]) {
        expect(flawOf(`${before}x${alone}y\r\n${before}`, each)).toBe("bare_line_break")
        expect(flawOf(`${before}x${alone}`, each)).toBe("bare_line_break")
      }
    }
  })

  it("is accepted up to the maximum size, and not a byte more", () => {
    const fill = (size: number, each: number) => {
      const data = Data.make(1024)
      for (let remaining = size; remaining > 0; remaining -= each)
        data.push(Buffer.alloc(Math.min(each, remaining), "x"))
      return data.finish()
    }
    for (const each of [1, 100, 4096]) {
      expect(fill(1024, each)).toMatchObject({ raw: Buffer.alloc(1024, "x") })
      expect(fill(1025, each)).toBe("too_large")
    }
  })

  it("is rejected with more than 100 Received fields, and with 200,001 empty lines", () => {
    const finished = (text: string, each = text.length) => {
      const data = Data.make(10_000_000)
      for (let at = 0; at < text.length; at += each) data.push(Buffer.from(text.slice(at, at + each)))
      const received = data.finish()
      return typeof received === "string" ? received : "fine"
    }
    const hops = (count: number) => `${"Received: from a by b\r\n".repeat(count)}Subject: x\r\n\r\nReceived: no\r\n`
    expect([finished(hops(100)), finished(hops(101))]).toEqual(["fine", "loop"])
    expect(finished("Received: from a by b\r\n".repeat(101))).toBe("loop")
    for (const each of [undefined, 64 * 1024]) {
      const empty = (lines: number) => finished("\r\n".repeat(lines), each)
      expect([empty(200_000), empty(200_001)]).toEqual(["fine", "short_lines"])
    }
    expect([finished("xx\r\n".repeat(250_000)), finished("x\r\n".repeat(250_000))]).toEqual(["fine", "short_lines"])
  })

  it("is hashed even if it is empty", () => {
    expect(Data.make(1024).finish()).toMatchObject({ sha256: new Uint8Array(createHash("sha256").digest()) })
  })
})
