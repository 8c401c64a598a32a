/** What DATA came to, however the network cut it. */
import * as Data from "@svc/mail-gateway/mail/smtp/Data"
import { describe, expect, it } from "@effect/vitest"
import { createHash } from "node:crypto"

const letter = Buffer.from("From: ada@example.org\r\nSubject: pieces\r\n\r\nOne line.\r\nAnother.\r\n")
const digest = new Uint8Array(createHash("sha256").update(letter).digest())

describe("the bytes of a message", () => {
  for (const pieces of [1, 2, 3, letter.length]) {
    it(`are the same with the same hash in ${pieces} ${pieces === 1 ? "piece" : "pieces"}`, () => {
      const data = Data.make(1024)
      const each = Math.ceil(letter.length / pieces)
      for (let at = 0; at < letter.length; at += each) data.push(letter.subarray(at, at + each))
      const received = data.finish()
      expect(typeof received === "string" ? received : received.raw.equals(letter)).toBe(true)
      expect(received).toMatchObject({ sha256: digest })
    })
  }

  it("are hashed where there are none", () => {
    expect(Data.make(1024).finish()).toMatchObject({ sha256: new Uint8Array(createHash("sha256").digest()) })
  })
})
