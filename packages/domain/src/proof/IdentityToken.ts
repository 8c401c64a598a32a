/** Identity tokens: short-lived JWTs for one audience, and the settings that limit what an Identity may prove where. */
import { Schema } from "effect"
import type { AddressBook } from "../Addresses.ts"
import { boundedList } from "../BoundedList.ts"
import { Line, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"
import { SitesPatch } from "./SignIn.ts"

/** The lifetime of a token in seconds. A token cannot be revoked, so it is short. */
export const tokenSeconds = { usual: 300, least: 60, most: 3600 } as const

const Audience = Line(500)

export const NewToken = Schema.Struct({
  audience: Audience,
  expires_in: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: tokenSeconds.least, maximum: tokenSeconds.most })),
  ),
  nonce: Schema.optionalKey(Line(255)),
  /** `RS256` by default, which every cloud accepts. */
  algorithm: Schema.optionalKey(Text.check(Schema.isMaxLength(20))),
})
export type NewToken = typeof NewToken.Type

export const IdentityToken = Schema.Struct({ token: Schema.String, expires_at: Timestamp }).annotate({
  identifier: "IdentityToken",
})

/** `any`, or a list, which is empty by default. */
const listOrAny = Schema.Union([Schema.Literal("any"), Schema.Array(Schema.String)])

export const ProofSettings = Schema.Struct({
  audiences: listOrAny,
  /** Sites at which the Identity may sign in without approval. */
  sites: listOrAny,
}).annotate({ identifier: "ProofSettings" })
export type ProofSettings = typeof ProofSettings.Type

export const ProofPatch = Schema.Struct({
  audiences: Schema.optionalKey(
    Schema.Union([Schema.Literal("any"), boundedList(Audience, 50, () => true, "an audience")]),
  ),
  sites: Schema.optionalKey(SitesPatch),
}).annotate({ identifier: "ProofPatch" })
export type ProofPatch = typeof ProofPatch.Type

/** Returns whether a text names this service, in any spelling of its address. */
export const isOurs = ({ baseUrl, profileBase }: Pick<AddressBook, "baseUrl" | "profileBase">, audience: string) => {
  const hostOf = (text: string) => URL.parse(text)?.host.replace(/\.$/, "").replace(/\.:/, ":")
  const ours = [hostOf(baseUrl), hostOf(profileBase)]
  return [audience, `https://${audience}`].some((text) => {
    const host = hostOf(text)
    return host !== undefined && host !== "" && ours.includes(host)
  })
}
