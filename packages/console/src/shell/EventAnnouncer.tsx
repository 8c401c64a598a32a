/** A live region in which screen readers announce Events that happen after the page was rendered. */
import { useEffect, useState } from "preact/hooks"
import type { Happened } from "../client/Invalidation.ts"
import { onEvent } from "../client/Live.ts"
import { wordsOf } from "../texts/events.ts"

/** The Events that are worth an announcement. */
const spoken: ReadonlySet<string> = new Set([
  "identity.ready",
  "identity.failed",
  "email.received",
  "email.bounced",
  "email.approval_requested",
  "mail.stopped",
  "webhook.failed",
  "connector.stopped",
  "connector.dm",
  "tunnel.connected",
  "tunnel.disconnected",
])

const Heard = () => {
  const [event, setEvent] = useState<Happened>()
  useEffect(
    () =>
      onEvent((event) => {
        if (spoken.has(event.type)) setEvent(event)
      }),
    [],
  )
  return (
    <div class="hidden-text" role="status">
      {/* A new element per Event, so that equal texts are announced again. */}
      {event === undefined ? null : (
        <span key={event.id}>
          {event.handle} {wordsOf(event.type)}
        </span>
      )}
    </div>
  )
}

export default Heard
