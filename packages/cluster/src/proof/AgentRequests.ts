/**
 * Verifies web requests that agents signed (Web Bot Auth, RFC 9421): which origin signed the request, and with which key.
 * The signature must cover the host and the origin, and is accepted for a minute after it was made.
 */
import { type KeyObject, verify } from "node:crypto"
import { signatureSeconds } from "@svc/domain/proof/RequestSignature"
import { httpSignatures } from "./Libraries.ts"
import * as PlainSignature from "./PlainSignature.ts"
import { requestTag } from "./WebBotAuth.ts"

/** Maximum characters of Signature-Input. Searching for the label in it takes quadratic time. */
const inputAtMost = 4 * 1024

/** Seconds by which the clocks of signer and verifier may differ. */
export const clockSkewSeconds = 10

export interface VerifiedRequest {
  readonly origin: string
  readonly kid: string
  readonly nonce: string
  /** In seconds. */
  readonly created: number
}

export type Reason = "unsigned" | "malformed" | "expired" | "unreadable_keys" | "unknown_key" | "altered"

/** The signature does not prove an origin. `message` is for the developer of the caller. */
export class NotVerified extends Error {
  readonly reason: Reason
  readonly isBusy: boolean
  constructor(reason: Reason, message: string, isBusy = false) {
    super(message)
    this.reason = reason
    this.isBusy = isBusy
  }
}

const malformed = (message: string) => new NotVerified("malformed", message)

const fieldsOf = ({ headers }: PlainSignature.SignedRequest, input: string) => {
  const covered = new Set(Array.from(input.matchAll(/"([^"]*)"/g), ([, name]) => name!.toLowerCase()))
  return ["signature", "signature-input", ...covered].flatMap((name) => {
    const value = headers.get(name)
    // The library searches for the end of a run of white space from each of its characters, which is quadratic.
    if (value !== undefined && /[\t ]{200}/.test(value)) throw malformed(`The field ${name} has too much white space.`)
    return value === undefined ? [] : [{ name, value }]
  })
}

/** Returns the label of the signature for this profile; other signatures of the request are ignored. */
const labelOf = (input: string): string | undefined =>
  /(?:^|,)\s*([a-z*][a-z0-9_.*-]*)=\([^)]*\)[^,()]*;tag="web-bot-auth"/.exec(input)?.[1]

/** Returns the origin, if the text is one. */
const originFrom = (text: string | undefined, schemes: ReadonlyArray<string>): string => {
  const url = text === undefined ? null : URL.parse(text)
  if (url === null || !schemes.includes(url.protocol) || url.href !== `${url.origin}/`) {
    throw malformed("Signature-Agent does not name one origin, such as https://agent.example.")
  }
  return url.origin
}

/** Returns the origin that a covered `Signature-Agent` names: the member with this key, or the only value. */
const originOf = (field: string, key: unknown, schemes: ReadonlyArray<string>): string => {
  const members = field.split(",").map((member) => /^\s*(?:([a-z*][a-z0-9_.*-]*)=)?"([^"\\]{1,512})"\s*$/.exec(member))
  const named = members.filter((member) => member !== null && (key === undefined || member[1] === key))
  return originFrom(
    named.length === 1 && (key !== undefined || members.length === 1) ? named[0]![2] : undefined,
    schemes,
  )
}

const unknownKey = (origin: string, kid: string) => new NotVerified("unknown_key", `${origin} has no key ${kid}.`)
const altered = () => new NotVerified("altered", "The signature does not belong to this request.")

interface Options {
  /** In seconds. */
  readonly now: number
  readonly schemes: ReadonlyArray<string>
  readonly keyOf: (origin: string, kid: string) => KeyObject | undefined | Promise<KeyObject | undefined>
}

/** Verifies a signature in its usual form. Returns undefined if the library must decide. */
const verifyPlain = async (request: PlainSignature.SignedRequest, { now, schemes, keyOf }: Options) => {
  const plain = PlainSignature.read(request)
  if (plain === undefined) return undefined
  const { created, expires, keyid: kid, nonce } = plain
  const isTimely =
    created <= now + clockSkewSeconds &&
    expires >= now - clockSkewSeconds &&
    now - created <= signatureSeconds + clockSkewSeconds
  if (!isTimely) return undefined
  const origin = originFrom(plain.agent, schemes)
  const found = keyOf(origin, kid)
  const key = found instanceof Promise ? await found : found
  if (key === undefined) throw unknownKey(origin, kid)
  if (!verify(null, plain.base, key, plain.signature)) throw altered()
  const verified: VerifiedRequest = { origin, kid, nonce, created }
  return verified
}

/**
 * Verifies the request at a time in seconds. Throws {@link NotVerified}. `schemes` are those that an origin may have.
 * `keyOf` returns the key of an origin, or undefined if the origin does not have it; it may throw {@link NotVerified}.
 */
export const verifyRequest = async (
  request: PlainSignature.SignedRequest,
  options: Options,
): Promise<VerifiedRequest> => (await verifyPlain(request, options)) ?? verifyAnyForm(request, options)

/** Verifies a signature in every form of RFC 9421, with the library. */
export const verifyAnyForm = async (
  request: PlainSignature.SignedRequest,
  options: Options,
): Promise<VerifiedRequest> => {
  const input = request.headers.get("signature-input")
  const agent = request.headers.get("signature-agent")
  if (input === undefined || agent === undefined || !request.headers.has("signature")) {
    throw new NotVerified("unsigned", "The request has no Signature, Signature-Input and Signature-Agent.")
  }
  if (input.length > inputAtMost) throw malformed("Signature-Input is too long.")
  const label = labelOf(input)
  if (label === undefined) throw malformed(`No signature has the tag ${requestTag}.`)
  const { isSignatureError, SignatureErrorCode, verifySignature } = await httpSignatures()
  let origin = ""
  try {
    const { parameters } = await verifySignature(
      { kind: "request", method: request.method, targetUri: request.url, fields: fieldsOf(request, input) },
      {
        label,
        policy: {
          algorithms: ["ed25519"],
          requiredComponents: ["@authority"],
          requiredParameters: ["created", "expires", "nonce", "keyid", "tag"],
          maxAge: signatureSeconds,
          clockSkew: clockSkewSeconds,
          now: options.now,
        },
        resolveVerifier: async ({ components, parameters: { keyid, nonce, tag } }) => {
          if (tag !== requestTag) throw malformed(`The tag is not ${requestTag}.`)
          if (nonce!.length > 200 || keyid!.length > 200) throw malformed("The nonce or the key id is too long.")
          const covered = components.filter(({ name }) => name === "signature-agent")
          if (covered.length !== 1) throw malformed("The signature does not cover signature-agent.")
          origin = originOf(agent, covered[0]!.parameters["key"], options.schemes)
          const found = options.keyOf(origin, keyid!)
          const key = found instanceof Promise ? await found : found
          if (key === undefined) throw unknownKey(origin, keyid!)
          return { algorithm: "ed25519", verify: (data, signature) => verify(null, data, key, signature) }
        },
      },
    )
    return { origin, kid: parameters.keyid!, nonce: parameters.nonce!, created: parameters.created! }
  } catch (error) {
    if (error instanceof NotVerified) throw error
    if (!isSignatureError(error)) throw malformed("The signature could not be read.")
    if (error.cause instanceof NotVerified) throw error.cause
    if (error.code === SignatureErrorCode.VerificationFailed) throw altered()
    throw new NotVerified(/expired|too old/.test(error.message) ? "expired" : "malformed", `${error.message}.`)
  }
}
