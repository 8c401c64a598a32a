/** Body hashes of DKIM signatures over all kinds of white space and lines. */
import { createHash } from "node:crypto"
import * as BodyHash from "@svc/mail-gateway/mail/judging/BodyHash"
import fc from "fast-check"
import { expect, it } from "vitest"

/** RFC 6376 section 3.4.4, line by line. */
const relaxed = (body: string) => {
  const lines = body.split("\r\n").map((line) => line.replaceAll(/[ \t]+/g, " ").replace(/ $/, ""))
  while (lines.at(-1) === "") lines.pop()
  return lines.map((line) => `${line}\r\n`).join("")
}

/** Section 3.4.3. */
const simple = (body: string) => `${body.replace(/(?:\r\n)+$/, "")}\r\n`

const bodies = fc
  .array(fc.constantFrom("a", "word", " ", "  ", "\t", "\r\n", "\r\n\r\n", "\r", "\n", "=", "."), { maxLength: 12 })
  .map((parts) => parts.join(""))

it("the body hash is that of the canonical form, whether or not the body is already canonical", () => {
  fc.assert(
    fc.property(bodies, (body) => {
      const hashes = BodyHash.make(Buffer.from(body, "latin1"))
      for (const [name, canonical] of [
        ["relaxed", relaxed(body)],
        ["simple", simple(body)],
      ] as const) {
        for (const algorithm of ["sha256", "sha1"] as const) {
          const expected = { hash: createHash(algorithm).update(canonical).digest("base64"), length: canonical.length }
          expect(hashes.of(name, algorithm), JSON.stringify([name, algorithm, body])).toEqual(expected)
        }
      }
    }),
    { numRuns: 2_000 },
  )
})
