/** A list of Events as sentences that link to their records. */
import { eventSentence } from "@svc/domain/events/EventSentences"
import type { Answer } from "../client/Client.ts"
import type { RowPlace } from "../ui/LongList.tsx"
import { Sentence } from "../ui/Sentence.tsx"
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

export const eventRow = (event: Event, at?: RowPlace) => (
  <li key={event.id} {...at}>
    <span class="status" data-tone={tones[event.type] ?? "off"} aria-hidden="true" />
    <span class="what">
      <a class="whole" href={`/console/activity/${event.id}`}>
        <Sentence of={(language, mark) => eventSentence(language, event, mark)} />
      </a>
    </span>
    <code class="type">{event.type}</code>
    <span class="muted small number">
      <Time at={event.created_at} />
    </span>
  </li>
)

export const EventList = ({ events }: { readonly events: ReadonlyArray<Event> }) => (
  <ul class="box rows events" data-list>
    {events.map((event) => eventRow(event))}
  </ul>
)
