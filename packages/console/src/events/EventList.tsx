/** Events as lines: who, what, and what it was about. */
import type { Answer } from "../client/Client.ts"
import { Time } from "../ui/Time.tsx"
import { wordsOf } from "../texts/events.ts"
import "./events.css"

export type Event = Answer<"GET /api/events/:id">

const tones: Readonly<Record<string, string>> = {
  "identity.ready": "ok",
  "identity.failed": "bad",
  "email.bounced": "bad",
  "email.refused": "warn",
  "email.recipient_blocked": "warn",
  "mail.stopped": "bad",
  "mail.started": "ok",
  "webhook.failed": "bad",
  "connector.stopped": "bad",
  "tunnel.connected": "ok",
  "tunnel.transfer_blocked": "bad",
  "limit.near": "warn",
  "audit.gap": "bad",
  "account.deletion_started": "bad",
}

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

/** The one thing to know of what happened: a subject, a step, a name. Whatever it says stands as text. */
const gist = (event: Event): string | undefined => {
  const data = event.data as Readonly<Record<string, unknown>>
  const from = data["from"] as { readonly address?: string } | string | null | undefined
  const sender = typeof from === "string" ? from : from?.address
  switch (event.type.split(".")[0]) {
    case "email":
      return [text(sender), text(data["subject"]) ?? text(data["recipient"])].filter(Boolean).join(" · ") || undefined
    case "mail":
      return text(data["reason"])
    case "webhook":
      return [text(data["event_type"]), text(data["error"]) ?? String(data["status_code"] ?? "")]
        .filter(Boolean)
        .join(" · ")
    case "card":
      return Array.isArray(data["changed"]) ? data["changed"].join(", ") : undefined
    case "connector":
      return text(data["account"])
    default:
      return text(data["error"]) ?? text(data["handle"]) ?? text(data["name"]) ?? text(data["limit"])
  }
}

export const EventList = ({ events }: { readonly events: ReadonlyArray<Event> }) => (
  <ul class="box rows events" data-list>
    {events.map((event) => {
      const about = gist(event)
      return (
        <li key={event.id}>
          <span class="status" data-tone={tones[event.type] ?? "off"} aria-hidden="true" />
          <span class="what">
            <a class="whole" href={`/console/activity/${event.id}`}>
              {event.handle === null ? null : <bdi class="who">{event.handle}</bdi>} {wordsOf(event.type)}
            </a>
            {about === undefined ? null : <bdi class="about one-line">{about}</bdi>}
          </span>
          <code class="type">{event.type}</code>
          <span class="muted small number">
            <Time at={event.created_at} />
          </span>
        </li>
      )
    })}
  </ul>
)
