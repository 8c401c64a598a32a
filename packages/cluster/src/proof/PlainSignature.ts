/**
 * Reads the signature of a request in the form in which signers serialize it: one signature, plain strings and integers,
 * each part once. The library reads every form of RFC 9421, which takes longer than the cryptography and is most of the
 * cost of a signed request at the edge. This module returns undefined for every other form, and the library decides. A
 * test compares both readers with random requests.
 */
import { requestTag } from "./WebBotAuth.ts"

export interface SignedRequest {
  readonly method: string
  /** The absolute address. */
  readonly url: string
  /** Fields by lower-case name. */
  readonly headers: ReadonlyMap<string, string>
}

export interface PlainSignature {
  readonly created: number
  readonly expires: number
  readonly keyid: string
  readonly nonce: string
  /** The text of the covered `Signature-Agent` member. */
  readonly agent: string
  /** The signature base (RFC 9421 section 2.5). */
  readonly base: Buffer
  readonly signature: Buffer
}

const component = `"[@a-z0-9-]{1,60}"(?:;key="[a-z][a-z0-9_-]{0,30}")?`
// Commas and parentheses within a string are left to the library, which separates signatures at them.
const parameter = `;[a-z]{1,20}=(?:\\d{1,15}|"[ !#-'*+\\--\\[\\]-~]{0,200}")`
const inputForm = new RegExp(
  `^([a-z][a-z0-9_-]{0,30})=(\\((${component}(?: ${component}){0,30})\\)((?:${parameter}){5,6}))$`,
)
const signatureForm = /^([a-z][a-z0-9_-]{0,30})=:([A-Za-z0-9+/]{86}==):$/
const agentForm = /^([a-z][a-z0-9_-]{0,30})="([!#-+\--[\]-~]{1,512})"$/
const ascii = /^[ -~]*$/
const token = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

/** Returns the parameters as numbers and strings, or undefined if one is repeated or is not in canonical form. */
const parametersOf = (text: string): ReadonlyMap<string, number | string> | undefined => {
  const found = new Map<string, number | string>()
  for (const [, name, integer, string] of text.matchAll(/;([a-z]+)=(?:(\d+)|"([^"]*)")/g)) {
    if (found.has(name!) || (integer !== undefined && String(Number(integer)) !== integer)) return undefined
    found.set(name!, integer === undefined ? string! : Number(integer))
  }
  return found
}

const addressForm = /^https?:\/\/[A-Za-z0-9.:[\]-]+(\/[!"$->@-~]*)(\?[!"$-~]*)?$/

export const read = ({ method, url, headers }: SignedRequest): PlainSignature | undefined => {
  const [, label, list, covered, given] = inputForm.exec(headers.get("signature-input") ?? "") ?? []
  const [, labelled, signature] = signatureForm.exec(headers.get("signature") ?? "") ?? []
  const [, member, agent] = agentForm.exec(headers.get("signature-agent") ?? "") ?? []
  if (label === undefined || label !== labelled || agent === undefined || !token.test(method)) return undefined
  const parameters = parametersOf(given!)
  const [, path, query = "?"] = addressForm.exec(url) ?? []
  const parsed = path === undefined ? null : URL.parse(url)
  if (parameters === undefined || parsed === null) return undefined
  const { created, expires, keyid, nonce, tag, alg = "ed25519" } = Object.fromEntries(parameters)
  if (typeof created !== "number" || typeof expires !== "number" || tag !== requestTag || alg !== "ed25519") {
    return undefined
  }
  if (typeof keyid !== "string" || typeof nonce !== "string" || keyid.length * nonce.length === 0) return undefined

  const values: Readonly<Record<string, string | undefined>> = {
    '"@authority"': parsed.host,
    '"@method"': method,
    '"@path"': path,
    '"@query"': query,
    [`"signature-agent";key="${member}"`]: `"${agent}"`,
  }
  const components = covered!.split(" ")
  const lines: Array<string> = []
  for (const name of components) {
    const value = Object.hasOwn(values, name) ? values[name] : fieldOf(headers, name)
    if (value === undefined || !ascii.test(value)) return undefined
    lines.push(`${name}: ${value}`)
  }
  const isComplete = ['"@authority"', `"signature-agent";key="${member}"`].every((name) => components.includes(name))
  if (!isComplete || new Set(components).size !== components.length) return undefined
  lines.push(`"@signature-params": ${list}`)
  return {
    created,
    expires,
    keyid,
    nonce,
    agent,
    base: Buffer.from(lines.join("\n"), "latin1"),
    signature: Buffer.from(signature!, "base64"),
  }
}

/** Returns the value of a covered header field. Other components, and members of fields, are left to the library. */
const fieldOf = (headers: SignedRequest["headers"], name: string): string | undefined => {
  const field = /^"([a-z0-9-]+)"$/.exec(name)?.[1]
  const value = field === undefined || field === "signature-agent" ? undefined : headers.get(field)
  return value?.trim() === value ? value : undefined
}
