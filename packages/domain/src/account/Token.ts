/**
 * The format of credentials: a prefix for the kind, 32 random bytes in base62, and a CRC-32 of both in base62. Secret
 * scanners and the service can recognise a credential without a look-up (decisions.md "Resources").
 */
import type { CredentialKind } from "./Account.ts"

const prefixes = {
  session: "svc_sess_",
  admin_key: "svc_admin_",
  identity_key: "svc_id_",
  grant: "svc_oat_",
} as const satisfies {
  readonly [K in CredentialKind]: string
}
const kinds = Object.entries(prefixes) as ReadonlyArray<readonly [CredentialKind, string]>

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
/** 62^43 exceeds 2^256. */
const secretLength = 43
const checksumLength = 6

const base62 = (value: bigint, length: number): string => {
  let out = ""
  for (let rest = value; out.length < length; rest /= 62n) out = alphabet[Number(rest % 62n)] + out
  return out
}

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
  return c
})

const crc32 = (text: string): number => {
  let crc = 0xffffffff
  for (let i = 0; i < text.length; i++) crc = crcTable[(crc ^ text.charCodeAt(i)) & 0xff]! ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}

const checksum = (text: string): string => {
  let out = ""
  for (let rest = crc32(text); out.length < checksumLength; rest = Math.floor(rest / 62))
    out = alphabet[rest % 62] + out
  return out
}

/** Returns the prefix, the random bytes and their checksum as one text. */
const withChecksum = (prefix: string, random: Uint8Array): string => {
  const value = random.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
  const text = prefix + base62(value, secretLength)
  return text + checksum(text)
}

/** Returns whether the text has the prefix, the length and a matching checksum. */
const isWellFormed = (prefix: string, token: string): boolean => {
  if (!token.startsWith(prefix) || token.length !== prefix.length + secretLength + checksumLength) return false
  // The checksum covers only the low byte of each character.
  if (!/^[0-9A-Za-z]+$/.test(token.slice(prefix.length))) return false
  return checksum(token.slice(0, -checksumLength)) === token.slice(-checksumLength)
}

/** Returns a credential with these 32 random bytes. */
export const make = (kind: CredentialKind, random: Uint8Array): string => withChecksum(prefixes[kind], random)

/** Returns the kind of a well-formed credential, or undefined. */
export const kindOf = (token: string): CredentialKind | undefined => {
  for (const [kind, prefix] of kinds) {
    if (token.startsWith(prefix)) return isWellFormed(prefix, token) ? kind : undefined
  }
  return undefined
}

/** Returns the part of a key that lists show: the prefix and the six characters after it. */
export const displayPrefix = (token: string): string => {
  const prefix = kinds.find(([, candidate]) => token.startsWith(candidate))?.[1] ?? ""
  return token.slice(0, prefix.length + 6)
}

/** Returns the kind that an `Authorization` header appears to contain, judged by its prefix alone, for logs. */
export const claimedKind = (authorization: string | undefined): CredentialKind | undefined => {
  if (authorization === undefined) return undefined
  const at = authorization.indexOf(" ") + 1
  for (const [kind, prefix] of kinds) if (authorization.startsWith(prefix, at)) return kind
  return undefined
}

/** OAuth tokens and codes have the format of credentials, with other prefixes. They contain no data. */
const oauthPrefixes = {
  access: "svc_oat_",
  refresh: "svc_ort_",
  code: "svc_oac_",
  /** Codes and access tokens of sign-ins at sites. The API and the MCP server do not know them. */
  signInCode: "svc_sic_",
  userinfo: "svc_sit_",
} as const
export type OAuthTokenKind = keyof typeof oauthPrefixes

export const makeOAuthToken = (kind: OAuthTokenKind, random: Uint8Array): string =>
  withChecksum(oauthPrefixes[kind], random)

/** Checks the format of a token without a look-up. */
export const isOAuthToken = (kind: OAuthTokenKind, token: string): boolean => isWellFormed(oauthPrefixes[kind], token)
