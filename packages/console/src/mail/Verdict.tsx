/** The result of the sender checks, as a badge or with an explanation of each check. */
import type { Answer } from "../client/Client.ts"
import { Note, Status, type Tone } from "../ui/Page.tsx"
import { say } from "./texts.ts"

type Origin = Answer<"GET /api/identities/:handle/messages/:id">["origin"]

const tones: { readonly [V in Origin["verdict"]]: Tone } = {
  verified: "ok",
  unverified: "off",
  failed: "bad",
  error: "warn",
}

export const Verdict = ({ origin }: { readonly origin: Origin }) => (
  <Status tone={tones[origin.verdict]}>{say(origin.verdict)}</Status>
)

/** The authentication methods (RFC 8601). */
const checks = [
  ["SPF", "spf", "spf_why"],
  ["DKIM", "dkim", "dkim_why"],
  ["DMARC", "dmarc", "dmarc_why"],
] as const

export const VerdictNote = ({ origin }: { readonly origin: Origin }) => {
  const tone = tones[origin.verdict]
  return (
    <Note {...(tone === "ok" || tone === "bad" || tone === "warn" ? { tone } : {})}>
      <span>
        {origin.verdict === "error"
          ? say("error_why")
          : say(`${origin.verdict}_why`, { domain: origin.domain ?? say("some_domain") })}
      </span>
      <details class="small">
        <summary class="muted">{checks.map(([name, check]) => `${name} ${origin[check]}`).join(" · ")}</summary>
        <dl class="facts">
          {checks.map(([name, check, why]) => [
            <dt key={name}>
              {name} <code>{origin[check]}</code>
            </dt>,
            <dd key={why}>{say(why)}</dd>,
          ])}
        </dl>
      </details>
    </Note>
  )
}
