/** `svc verify <proof>`: says who signed a token, an A2A card or a request, and exits with 1 if the proof does not stand. */
import { readFile } from "node:fs/promises"
import { text } from "node:stream/consumers"
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { call, connect, explained, Misused, understood } from "../client/Connection.ts"
import { apiFlag } from "../client/Flags.ts"
import { formatFlags, respond } from "../client/Format.ts"

const Verification = Schema.Struct({
  valid: Schema.Boolean,
  agent: Schema.NullOr(
    Schema.Struct({
      issuer: Schema.String,
      subject: Schema.NullOr(Schema.String),
      handle: Schema.NullOr(Schema.String),
    }),
  ),
  kid: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  detail: Schema.NullOr(Schema.String),
})

const isToken = (text: string) => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text) && text.startsWith("ey")

const parsed = (text: string, from: string) =>
  Effect.try({
    try: () => Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Unknown))(JSON.parse(text)),
    catch: () => new Misused({ message: `${from} contains neither a token nor a JSON object.` }),
  })

/** Returns the body of the call for a token, the address of a card, or a file (`-` for standard input). */
const proofOf = Effect.fnUntraced(function* (given: string) {
  if (isToken(given)) return { token: given }
  if (/^https?:\/\//.test(given)) {
    const card = yield* Effect.tryPromise({
      try: async () => (await fetch(given, { signal: AbortSignal.timeout(10_000) })).text(),
      catch: () => new Misused({ message: `${given} cannot be read.` }),
    })
    return { card: yield* parsed(card, given), card_url: given }
  }
  const content = (yield* Effect.tryPromise({
    try: () => (given === "-" ? text(process.stdin) : readFile(given, "utf8")),
    catch: () => new Misused({ message: `${given} is neither a token, nor an address, nor a file that can be read.` }),
  })).trim()
  if (isToken(content)) return { token: content }
  const proof = yield* parsed(content, given)
  return "headers" in proof ? { request: proof } : { card: proof }
})

export const command = Command.make(
  "verify",
  {
    proof: Argument.String("proof").pipe(
      Argument.withDescription(
        "A token, the address of a card, or a file with a token, a card, or a request as {method, url, headers}; - reads standard input",
      ),
    ),
    audience: Flag.String("audience").pipe(
      Flag.withDescription("The audience that the token must have"),
      Flag.optional,
    ),
    ...formatFlags,
    api: apiFlag,
  },
  Effect.fnUntraced(function* ({ api: flag, audience, proof, ...format }) {
    const { api, key } = yield* connect(flag)
    const body = {
      ...(yield* proofOf(proof)),
      ...Option.match(audience, { onNone: () => ({}), onSome: (audience) => ({ audience }) }),
    }
    const response = yield* call(api, "POST", "/api/verify", { key, body })
    const found = yield* understood(api, Schema.decodeUnknownEffect(Verification)(response))
    if (!found.valid) process.exitCode = 1
    yield* respond(format, response, () => {
      if (found.agent === null) return `Not verified (${found.reason}): ${found.detail}`
      const { handle, issuer, subject } = found.agent
      const names = [handle === null ? issuer : `${handle}, ${issuer}`, ...(subject === null ? [] : [subject])]
      return `Verified: ${names.join(", ")}, key ${found.kid}`
    })
  }, explained),
).pipe(Command.withDescription("Verify who signed a token, an A2A card or a web request"))
