/** Events as sentences; the page of each has its record. */
import { eventSentence } from "@svc/domain/events/EventSentences"
import type { Answer } from "../client/Client.ts"
import { isolated, language } from "../texts/Texts.ts"
import { Time } from "../ui/Time.tsx"
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

/** What an Event says, in the language of the console. */
export const sentenceOf = (event: Event): string => eventSentence(language.value, event, isolated)

export const EventList = ({ events }: { readonly events: ReadonlyArray<Event> }) => (
  <ul class="box rows events" data-list>
    {events.map((event) => (
      <li key={event.id}>
        <span class="status" data-tone={tones[event.type] ?? "off"} aria-hidden="true" />
        <span class="what">
          <a class="whole" href={`/console/activity/${event.id}`}>
            <bdi>{sentenceOf(event)}</bdi>
          </a>
        </span>
        <code class="type">{event.type}</code>
        <span class="muted small number">
          <Time at={event.created_at} />
        </span>
      </li>
    ))}
  </ul>
)
