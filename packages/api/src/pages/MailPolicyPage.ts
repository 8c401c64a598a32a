/**
 * The MTA-STS policy (RFC 8461), which tells senders that the mail servers support TLS and by which names. Senders fetch it
 * from `mta-sts.<mail domain>`.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"

export interface MailPolicySettings {
  readonly mode: "none" | "testing" | "enforce"
  /** Names of the mail servers, as in the MX records. */
  readonly servers: ReadonlyArray<string>
}

const maxAgeSeconds = 7 * 24 * 3600

/** Returns the text of the policy (RFC 8461 section 3.2). */
export const policyOf = ({ mode, servers }: MailPolicySettings): string =>
  [
    "version: STSv1",
    `mode: ${mode}`,
    ...servers.map((server) => `mx: ${server}`),
    `max_age: ${maxAgeSeconds}`,
    "",
  ].join("\r\n")

export const layer = (policy: MailPolicySettings) =>
  HttpRouter.use((router) =>
    router.add(
      "GET",
      "/.well-known/mta-sts.txt",
      Effect.succeed(
        HttpServerResponse.text(policyOf(policy), {
          contentType: "text/plain",
          headers: { "cache-control": "public, max-age=300" },
        }),
      ),
    ),
  )
