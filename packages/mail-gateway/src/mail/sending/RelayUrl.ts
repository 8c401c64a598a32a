/**
 * The address of the operator's relay: `smtp://user:password@host:587`, or `smtps://` for TLS from the first byte. `smtp://`
 * goes over to TLS with a checked certificate, or says nothing; `?tls=optional` takes what is offered, `?tls=none` stays in
 * the clear. A relay on this machine need not have TLS.
 */
import { Effect, Redacted, Schema } from "effect"
import type { Terms } from "./smtp/Conversation.ts"

/** The URL is not one of a relay; `message` says why, in words for operators. */
export class RelayUrlInvalid extends Schema.TaggedError<RelayUrlInvalid>()("RelayUrlInvalid", {
  message: Schema.String,
}) {}

export interface RelayServer {
  readonly host: string
  readonly port: number
  readonly tls: Terms["tls"]
  readonly login: Terms["login"]
}

const loopback = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/
const modes = new Set(["required", "optional", "none"])

/** Reads the URL. */
export const parse = (url: Redacted.Redacted<string>): Effect.Effect<RelayServer, RelayUrlInvalid> => {
  const refuse = (message: string) => Effect.fail(new RelayUrlInvalid({ message: `SVC_SMTP_RELAY_URL ${message}` }))
  const parsed = URL.parse(Redacted.value(url))
  if (parsed === null || !/^smtps?:$/.test(parsed.protocol) || parsed.hostname === "") {
    return refuse("is not an address of a relay: smtp://user:password@relay.example:587.")
  }
  const unknown = [...parsed.searchParams.keys()].find((name) => name !== "tls")
  if (unknown !== undefined) return refuse(`has a parameter that nobody knows: ${unknown} (only tls is one).`)
  const host = parsed.hostname.replace(/^\[|\]$/g, "")
  const asked = parsed.searchParams.get("tls")
  if (asked !== null && !modes.has(asked)) return refuse("says tls=… something other than required, optional or none.")
  const isHere = loopback.test(host)
  const isImmediate = parsed.protocol === "smtps:"
  const mode =
    asked === "optional" || asked === "none" || asked === "required" ? asked : isHere ? "optional" : "required"
  const decoded = (text: string) => {
    try {
      return decodeURIComponent(text)
    } catch {
      return text
    }
  }
  return Effect.succeed({
    host,
    port: parsed.port === "" ? (isImmediate ? 465 : 587) : Number(parsed.port),
    tls: isImmediate ? "immediate" : mode,
    login:
      parsed.username === ""
        ? undefined
        : {
            user: decoded(parsed.username),
            password: Redacted.make(decoded(parsed.password)),
            inTheClear: isHere || mode === "none",
          },
  })
}
