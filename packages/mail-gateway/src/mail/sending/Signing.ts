/**
 * DKIM signatures of what we send (RFC 6376, RFC 8463), one for each key that signs. The fields that say who speaks, to
 * whom, of what, and that a machine wrote it, are signed once more often than they are there, so that none can be added,
 * and none that is missing can be made up. Header and body are hashed in slices, and keys sign outside the loop.
 */
import { createHash, type KeyObject, sign as signBytes } from "node:crypto"
import { generateCanonicalizedHeader } from "mailauth/lib/dkim/header/index.js"
import { formatRelaxedLine, formatSignatureHeaderLine } from "mailauth/lib/tools.js"
import { Effect } from "effect"
import { hashing } from "../judging/BodyHash.ts"
import * as Header from "../mime/Header.ts"
import { inTurns } from "./SlicedLoop.ts"

export interface SigningKey {
  /** The signing domain; `<selector>._domainkey.<domain>` has the public half. */
  readonly domain: string
  readonly selector: string
  readonly algorithm: "rsa-sha256" | "ed25519-sha256"
  readonly key: KeyObject
}

/** RFC 6376 section 5.4.1, RFC 8058 section 4 for the `List-` fields, and what we disclose. */
const signed = [
  "From",
  "Sender",
  "Reply-To",
  "Subject",
  "Date",
  "Message-ID",
  "To",
  "Cc",
  "In-Reply-To",
  "References",
  "Auto-Submitted",
  "AI-Disclosure",
  "List-Unsubscribe",
  "List-Unsubscribe-Post",
  "MIME-Version",
  "Content-Type",
  "Content-Transfer-Encoding",
] as const

const canonicalization = "relaxed/relaxed"

/** The rows that are covered, and the names of all that is: each name once for every row of it, and once more for none. */
const coverOf = (raw: Buffer, rows: ReadonlyArray<Header.Row>) => {
  const headers = signed.flatMap((name) =>
    rows
      .filter(({ key }) => key === name.toLowerCase())
      // Of several the last is covered first (section 5.4.2).
      .toReversed()
      .map((row) => ({
        key: row.key,
        casedKey: name,
        line: raw.subarray(row.start, raw[row.end - 1] === 10 ? row.end - 2 : row.end),
      })),
  )
  return { headers, keys: [...headers.map(({ casedKey }) => casedKey), ...signed].join(": ") }
}

const signatureOf = (key: SigningKey, bytes: Buffer): Effect.Effect<string> =>
  Effect.callback((resume) => {
    // RFC 8463 section 3: what Ed25519 signs is the hash.
    const [algorithm, data] =
      key.algorithm === "rsa-sha256" ? ["sha256", bytes] : [null, createHash("sha256").update(bytes).digest()]
    signBytes(algorithm, data, key.key, (error, signature) =>
      resume(error === null ? Effect.succeed(signature.toString("base64")) : Effect.die(error)),
    )
  })

/** The fields to put on top of the message; its lines end with CR LF. */
export const sign = Effect.fn("Signing.sign")(function* (
  message: Uint8Array,
  keys: ReadonlyArray<SigningKey>,
  at: Date,
) {
  const raw = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  const { rows, bodyStart } = Header.read(raw, 0, raw.length)
  const { hash } = yield* inTurns(() => hashing(raw.subarray(bodyStart), "relaxed", "sha256"))
  const { headers, keys: covered } = coverOf(raw, rows)
  // The same for every key; its own field comes behind.
  const canonical = Buffer.concat(headers.map(({ line }) => formatRelaxedLine(line, "\r\n")))
  const own = { headers: [], keys: covered }
  const fields = yield* Effect.forEach(keys, (key) =>
    Effect.gen(function* () {
      const { canonicalizedHeader, dkimHeaderOpts } = generateCanonicalizedHeader("DKIM", own, {
        signingDomain: key.domain,
        selector: key.selector,
        algorithm: key.algorithm,
        canonicalization,
        bodyHash: hash,
        timestamp: Math.floor(at.getTime() / 1000),
        expiration: false,
      })
      const b = yield* signatureOf(key, Buffer.concat([canonical, canonicalizedHeader]))
      return `${formatSignatureHeaderLine("DKIM", { ...dkimHeaderOpts, b }, true)}\r\n`
    }),
  )
  return Buffer.from(fields.join(""), "latin1")
})
