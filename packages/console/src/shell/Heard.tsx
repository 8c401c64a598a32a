/**
 * Says what happens to who does not see it slide in: a region that screen readers speak up from. It comes when the page at
 * hand was drawn, and speaks of what happens from then on.
 */
import { useEffect, useState } from "preact/hooks"
import type { Happened } from "../client/Live.ts"
import { onEvent } from "../client/Live.ts"
import { wordsOf } from "../texts/events.ts"

/** What somebody who looks after agents would look up for; everything is in the list of Events. */
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
      {/* Another element for each, so that the same words are spoken again. */}
      {event === undefined ? null : (
        <span key={event.id}>
          {event.handle} {wordsOf(event.type)}
        </span>
      )}
    </div>
  )
}

export default Heard
