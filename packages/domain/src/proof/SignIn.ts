/**
 * Sign-ins of an Identity at sites (relying parties of OpenID Connect), and the sites at which an Identity may sign in
 * without approval.
 */
import { Schema } from "effect"
import { boundedList } from "../BoundedList.ts"
import { Uuid } from "../IdSchemas.ts"
import { ShownUrl, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

/** The scopes of OpenID Connect that the service knows. */
export const openIdScopes = ["openid", "email", "profile"] as const

/** The algorithms of ID tokens; the first one is the default. */
export const idTokenAlgorithms = ["RS256", "ES256"] as const
export type IdTokenAlgorithm = (typeof idTokenAlgorithms)[number]

const isSite = (text: string): boolean => {
  if (/^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)*:$/.test(text)) return !["http:", "https:"].includes(text)
  if (text.includes("/") || text.includes("@")) return false
  const url = URL.parse(`https://${text}`)
  return url !== null && url.host === text && url.pathname === "/" && url.search === "" && url.hash === ""
}

/** A site: a host in lower case, with its port if it is not 443, or the scheme of an app such as `com.example.app:`. */
const Site = Text.check(
  Schema.isMaxLength(260),
  Schema.makeFilter(isSite, { expected: "a host in lower case without a scheme and a path, such as app.example" }),
)

/** `any`, or a list, which is empty by default. */
export const SitesPatch = Schema.Union([Schema.Literal("any"), boundedList(Site, 50, () => true, "a site")])

export const NewSignIn = Schema.Struct({
  authorization_url: Text.check(Schema.isMaxLength(10_000)),
}).annotate({ identifier: "NewSignIn" })

/**
 * `started`: the site has not exchanged the code yet. `approved`: the agent may post the request again, until
 * `expires_at`.
 */
export const SignInStatus = Schema.Literals([
  "awaiting_approval",
  "approved",
  "refused",
  "expired",
  "started",
  "signed_in",
  "ended",
])
export type SignInStatus = typeof SignInStatus.Type

const fields = {
  id: Uuid,
  status: SignInStatus,
  site: Schema.String,
  client_id: Schema.String,
  client_name: Schema.String,
  redirect_uri: Schema.String,
  scopes: Schema.Array(Schema.String),
  created_at: Timestamp,
  expires_at: Timestamp,
  decided_at: Schema.NullOr(Timestamp),
  signed_in_at: Schema.NullOr(Timestamp),
  ended_at: Schema.NullOr(Timestamp),
}

export const AgentSignIn = Schema.Struct(fields).annotate({ identifier: "AgentSignIn" })
export type AgentSignIn = typeof AgentSignIn.Type

/** The sign-in, and the address that the agent opens; null while the sign-in awaits approval. */
export const StartedSignIn = Schema.Struct({ ...fields, redirect_url: Schema.NullOr(ShownUrl) }).annotate({
  identifier: "StartedSignIn",
})
