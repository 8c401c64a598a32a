/** The format of OAuth tokens and codes: that of credentials, with other prefixes. Tokens contain no data. */
import { isWellFormed, withChecksum } from "../account/Token.ts"

const prefixes = { access: "svc_oat_", refresh: "svc_ort_", code: "svc_oac_" } as const
export type OAuthTokenKind = keyof typeof prefixes

export const make = (kind: OAuthTokenKind, random: Uint8Array): string => withChecksum(prefixes[kind], random)

/** Checks the format of a token without a look-up. */
export const isOf = (kind: OAuthTokenKind, token: string): boolean => isWellFormed(prefixes[kind], token)
