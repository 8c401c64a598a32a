/** The format of what clients hold: as that of credentials, with prefixes of their own. They carry nothing. */
import { isWellFormed, withChecksum } from "../account/Token.ts"

const prefixes = { access: "svc_oat_", refresh: "svc_ort_", code: "svc_oac_" } as const
export type OAuthTokenKind = keyof typeof prefixes

export const make = (kind: OAuthTokenKind, random: Uint8Array): string => withChecksum(prefixes[kind], random)

/** Garbage is told from a real one without a look-up. */
export const isOf = (kind: OAuthTokenKind, token: string): boolean => isWellFormed(prefixes[kind], token)
