/**
 * Creates DKIM signatures of outgoing mail (RFC 6376, RFC 8463), one per active key. Fields that affect what a reader
 * sees are signed once more than they occur, so that none can be added later. Header and body are hashed in slices, and
 * RSA signs outside the event loop.
 */
import { hash as hashOf, type KeyObject, sign as signBytes } from "node:crypto"
import { generateCanonicalizedHeader } from "mailauth/lib/dkim/header/index.js"
import { formatRelaxedLine, formatSignatureHeaderLine } from "mailauth/lib/tools.js"
import { Effect } from "effect"
import { hashing } from "../judging/BodyHash.ts"
import * as Header from "../mime/Header.ts"
import { inTurns } from "../SlicedWork.ts"

export interface SigningKey {
  /** The signing domain. `<selector>._domainkey.<domain>` has the public key. */
  readonly domain: string
  readonly selector: string
  readonly algorithm: "rsa-sha256" | "ed25519-sha256"
  readonly key: KeyObject
}

/** The fields of RFC 6376 section 5.4.1, the `List-` fields of RFC 8058 section 4, the AI disclosure, and the agent's DID. */
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
  "Agent-Identity",
  "List-Unsubscribe",
  "List-Unsubscribe-Post",
  "MIME-Version",
  "Content-Type",
  "Content-Transfer-Encoding",
] as const

const canonicalization = "relaxed/relaxed"

/** Returns the covered rows, and the `h` tag: each name once per row, and once more to prevent additions. */
const coverOf = (raw: Buffer, rows: ReadonlyArray<Header.Row>) => {
  const headers = signed.flatMap((name) =>
    rows
      .filter(({ key }) => key === name.toLowerCase())
      // Repeated fields are signed from last to first (section 5.4.2).
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
  key.algorithm === "rsa-sha256"
    ? Effect.callback((resume) =>
        signBytes("sha256", bytes, key.key, (error, signature) =>
          resume(error === null ? Effect.succeed(signature.toString("base64")) : Effect.die(error)),
        ),
      )
    : // Ed25519 signs the hash (RFC 8463 section 3), which takes less time than handing it over to a thread.
      Effect.sync(() => signBytes(null, hashOf("sha256", bytes, "buffer"), key.key).toString("base64"))

/** Returns the fields to put on top of the message, with lines that end in CR LF. */
export const sign = Effect.fn("Signing.sign")(function* (
  message: Uint8Array,
  keys: ReadonlyArray<SigningKey>,
  at: Date,
) {
  const raw = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  const { rows, bodyStart } = Header.read(raw, 0, raw.length)
  const { hash } = yield* inTurns(() => hashing(raw.subarray(bodyStart), "relaxed", "sha256"))
  const { headers, keys: covered } = coverOf(raw, rows)
  // Shared by all keys. Each key's own field follows.
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
