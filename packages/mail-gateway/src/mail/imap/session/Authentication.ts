/**
 * LOGIN and AUTHENTICATE with PLAIN (RFC 4616), LOGIN, and OAUTHBEARER (RFC 7628), whose token is an Identity Key. A
 * failure does not say what was wrong.
 */
import { type Effect, Redacted } from "effect"
import type { Named } from "../protocol/Command.ts"
import { bad, type Completion, no } from "./Conversation.ts"
import type { Store } from "./Store.ts"

/** `denied` is the response code (RFC 5530). */
export interface Denied {
  readonly denied: "AUTHENTICATIONFAILED" | "LIMIT" | "UNAVAILABLE"
  readonly text: string
  /** Whether the connection ends after too many failures. */
  readonly ends: boolean
}

export type Login = (user: string | undefined, password: Redacted.Redacted<string>) => Effect.Effect<Store | Denied>

type Mechanism = "PLAIN" | "LOGIN" | "OAUTHBEARER"

export interface Exchange {
  readonly tag: string
  readonly mechanism: Mechanism
  /** The user name of LOGIN, once it was sent. */
  readonly user?: string
}

export type Step =
  | { readonly _tag: "Challenge"; readonly text: string; readonly exchange: Omit<Exchange, "tag"> }
  | { readonly _tag: "Said"; readonly user: string | undefined; readonly password: Redacted.Redacted<string> }
  | { readonly _tag: "Refused"; readonly completion: Completion }

const mechanisms: ReadonlyArray<Mechanism> = ["PLAIN", "LOGIN", "OAUTHBEARER"]

const base64 = (text: string) => Buffer.from(text).toString("base64")

const malformed: Step = { _tag: "Refused", completion: bad("Invalid authentication response.") }

export const login = (judge: Login, { user, password }: Named<"LOGIN">): Effect.Effect<Store | Denied> =>
  judge(user, Redacted.make(password))

export const begin = ({ mechanism, initial }: Named<"AUTHENTICATE">): Step => {
  const known = mechanisms.find((one) => one === mechanism)
  if (known === undefined) return { _tag: "Refused", completion: no("Unknown authentication mechanism.", "CANNOT") }
  const exchange = { mechanism: known }
  // `=` is an empty initial response (RFC 4959 section 3), and is decoded as an empty text.
  if (initial !== undefined) return said(exchange, initial)
  return { _tag: "Challenge", text: known === "LOGIN" ? base64("Username:") : "", exchange }
}

export const next = (exchange: Exchange, line: string): Step =>
  line === "*" ? { _tag: "Refused", completion: bad("Cancelled.") } : said(exchange, line)

const said = ({ mechanism, user }: Omit<Exchange, "tag">, text: string): Step => {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length > 8_192) return malformed
  const value = Buffer.from(text, "base64").toString("utf8")
  switch (mechanism) {
    case "PLAIN": {
      const [authorize, name, password, ...rest] = value.split("\0")
      if (authorize === undefined || name === undefined || password === undefined || rest.length > 0) return malformed
      // A user cannot act for another user.
      if (authorize !== "" && authorize.toLowerCase() !== name.toLowerCase()) {
        return {
          _tag: "Refused",
          completion: no("Authorization as another user is not supported.", "AUTHORIZATIONFAILED"),
        }
      }
      return { _tag: "Said", user: name, password: Redacted.make(password) }
    }
    case "LOGIN":
      return user === undefined
        ? { _tag: "Challenge", text: base64("Password:"), exchange: { mechanism, user: value } }
        : { _tag: "Said", user, password: Redacted.make(value) }
    case "OAUTHBEARER": {
      const [header = "", ...fields] = value.split("\x01")
      const token = fields.map((field) => /^auth=Bearer +([^\s]+)$/i.exec(field)?.[1]).find((one) => one !== undefined)
      const name = /(?:^|,)a=([^,]+)/.exec(header)?.[1]?.replaceAll("=2C", ",").replaceAll("=3D", "=")
      return token === undefined ? malformed : { _tag: "Said", user: name, password: Redacted.make(token) }
    }
  }
}
