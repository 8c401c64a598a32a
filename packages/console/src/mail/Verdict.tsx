/** Whether the domain of the sender really sent it: a dot and a word, spelt out where there is room. */
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

export const VerdictNote = ({ origin }: { readonly origin: Origin }) => {
  const tone = tones[origin.verdict]
  return (
    <Note {...(tone === "ok" || tone === "bad" || tone === "warn" ? { tone } : {})}>
      <div class="bar spread">
        <span>
          {origin.verdict === "error"
            ? say("error_why")
            : say(`${origin.verdict}_why`, { domain: origin.domain ?? say("some_domain") })}
        </span>
        <code class="muted small">
          SPF {origin.spf} · DKIM {origin.dkim} · DMARC {origin.dmarc}
        </code>
      </div>
    </Note>
  )
}
