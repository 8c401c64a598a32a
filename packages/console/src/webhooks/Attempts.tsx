/** The attempts of a delivery with their responses, and the next one. */
import type { Answer } from "../client/Client.ts"
import { dateTime, duration, readyTimes } from "../texts/Texts.ts"
import { Status, type Tone } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"

readyTimes()

export type Delivery = Answer<"GET /api/identities/:handle/webhooks/:id/deliveries">["deliveries"][number]
type Attempt = Delivery["attempts"][number]

export const tones: { readonly [S in Delivery["status"]]: Tone } = {
  delivered: "ok",
  queued: "busy",
  retrying: "warn",
  failed: "bad",
}

type WebhookState = Answer<"GET /api/identities/:handle/webhooks/:id">["status"]
const stateTones: { readonly [S in WebhookState]: Tone } = { active: "ok", disabled: "off", stopped: "bad" }

export const WebhookStatus = ({ status }: { readonly status: WebhookState }) => (
  <Status tone={stateTones[status]}>{say(status)}</Status>
)

const reasons = {
  timeout: "why_timeout",
  refused_address: "why_refused",
  connection: "why_connect",
  dns: "why_dns",
  tls: "why_tls",
  interrupted: "why_interrupted",
  webhook_disabled: "why_disabled",
  creator_revoked: "why_creator_revoked",
  creator_expired: "why_creator_expired",
  creator_narrowed: "why_creator_narrowed",
} as const

const isReceived = ({ status_code }: Attempt) => status_code !== null && status_code >= 200 && status_code < 300

/** Returns why an attempt failed; undefined if it succeeded. */
export const whyOf = (attempt: Attempt): string | undefined => {
  if (isReceived(attempt)) return undefined
  if (attempt.status_code !== null) return say("why_status", { status: String(attempt.status_code) })
  const { error } = attempt
  return error !== null && error in reasons ? say(reasons[error as keyof typeof reasons]) : (error ?? undefined)
}

const Body = ({ text }: { readonly text: string | null }) =>
  text === null || text === "" ? (
    <span class="muted small">{say("no_body")}</span>
  ) : (
    <pre class="answer" dir="auto" tabIndex={0} aria-label={say("answer")}>
      {text}
    </pre>
  )

export const Attempts = ({ delivery }: { readonly delivery: Delivery }) => (
  <ol class="attempts">
    {delivery.attempts.map((attempt) => (
      <li key={attempt.number} data-tone={isReceived(attempt) ? "ok" : "bad"}>
        <div class="bar">
          <strong>{say("attempt", { number: attempt.number })}</strong>
          <code>{attempt.status_code === null ? attempt.error : `HTTP ${attempt.status_code}`}</code>
          <span class="muted small number">
            {duration(attempt.duration_ms)} · <Time at={attempt.started_at} form="full" />
          </span>
        </div>
        {whyOf(attempt) === undefined ? null : <p>{whyOf(attempt)}</p>}
        {attempt.status_code === null ? null : <Body text={attempt.response_body ?? null} />}
      </li>
    ))}
    {delivery.next_attempt_at === null ? null : (
      <li data-tone="next">
        <div class="bar">
          <Status tone={tones[delivery.status]}>{say("next")}</Status>
          <span class="muted small number" title={dateTime(new Date(delivery.next_attempt_at))}>
            <Time at={delivery.next_attempt_at} />
          </span>
        </div>
      </li>
    )}
  </ol>
)
