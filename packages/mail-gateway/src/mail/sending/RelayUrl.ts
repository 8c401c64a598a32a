/**
 * Parses the address of the operator's relay: `smtp://user:password@host:587`, or `smtps://` for implicit TLS.
 * `smtp://` requires STARTTLS with a valid certificate; `?tls=optional` uses TLS if it is offered, and `?tls=none`
 * never. TLS is optional for a relay on the same machine.
 */
import { Effect, Redacted, Schema } from "effect"
import type { Terms } from "./smtp/Conversation.ts"

/** The URL is invalid; `message` tells the operator why. */
class RelayUrlInvalid extends Schema.TaggedError<RelayUrlInvalid>()("RelayUrlInvalid", {
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

export const parse = (url: Redacted.Redacted<string>): Effect.Effect<RelayServer, RelayUrlInvalid> => {
  const refuse = (message: string) => Effect.fail(new RelayUrlInvalid({ message: `SVC_SMTP_RELAY_URL ${message}` }))
  const parsed = URL.parse(Redacted.value(url))
  if (parsed === null || !/^smtps?:$/.test(parsed.protocol) || parsed.hostname === "") {
    return refuse("is not a relay address, for example smtp://user:password@relay.example:587.")
  }
  const unknown = [...parsed.searchParams.keys()].find((name) => name !== "tls")
  if (unknown !== undefined) return refuse(`has an unknown parameter: ${unknown} (only tls is supported).`)
  const host = parsed.hostname.replace(/^\[|\]$/g, "")
  const tls = parsed.searchParams.get("tls")
  if (tls !== null && !modes.has(tls)) return refuse("has an invalid value for tls: use required, optional or none.")
  const isLocal = loopback.test(host)
  const isImmediate = parsed.protocol === "smtps:"
  const mode = tls === "optional" || tls === "none" || tls === "required" ? tls : isLocal ? "optional" : "required"
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
            inTheClear: isLocal || mode === "none",
          },
  })
}
