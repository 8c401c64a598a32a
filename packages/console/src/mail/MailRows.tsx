/** Messages as rows of a list. Text by senders is isolated from the text direction around it. */
import { mailPath } from "../router/Paths.ts"
import type { ComponentChildren } from "preact"
import type { Answer } from "../client/Client.ts"
import { readyTimes } from "../texts/Texts.ts"
import { Icon } from "../ui/Icon.tsx"
import type { RowPlace } from "../ui/LongList.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"
import { Verdict } from "./Verdict.tsx"
import "./mail.css"

readyTimes()

export type Summary = Answer<"GET /api/identities/:handle/messages">["messages"][number]

const correspondent = ({ direction, from, to }: Summary) => {
  const shown = direction === "outbound" ? to[0] : from
  return shown === null || shown === undefined ? say("no_sender") : (shown.name ?? shown.address)
}

/** Maximum number of labels per message. */
const tagsShown = 2
const labelsShown = 2

interface RowOptions {
  readonly handle: string
  /** The message that is open beside the list. */
  readonly open?: string | undefined
  /** The query that leads back to this list. */
  readonly search?: string
  /** Returns the control that selects a message. */
  readonly pick?: (message: Summary) => ComponentChildren
}

/** Returns the function that shows a message as a row of a list. */
export const mailRow =
  ({ handle, open, search = "", pick }: RowOptions) =>
  (message: Summary, at?: RowPlace) => (
    <li
      key={message.id}
      data-entry={message.id}
      {...at}
      {...(message.id === open ? { "data-open": "" } : {})}
      {...(message.direction === "inbound" && !message.seen ? { "data-unread": "" } : {})}
    >
      {pick?.(message)}
      <span class="sender one-line">
        <bdi>{correspondent(message)}</bdi>
      </span>
      <span class="time muted small number">
        <Time at={message.received_at} form="moment" />
      </span>
      <a
        class="whole one-line"
        href={`/console${mailPath(handle)}/${message.id}${search}`}
        {...(message.id === open ? { "aria-current": "true" } : {})}
      >
        {message.direction === "inbound" && !message.seen ? <span class="hidden-text">{say("unread")}: </span> : null}
        <bdi class="subject">{message.subject === "" ? say("no_subject") : message.subject}</bdi>
        <bdi class="snippet">{message.snippet}</bdi>
      </a>
      <span class="marks">
        {message.flagged ? <Mark icon="star" what={say("flagged")} /> : null}
        {message.attachments.length === 0 ? null : <Mark icon="clip" what={say("attachments")} />}
        {[...message.tags.slice(0, tagsShown), ...message.labels.slice(0, labelsShown)].map((tag) => (
          <span class="tag" key={tag}>
            <bdi class="one-line">{tag}</bdi>
          </span>
        ))}
        {message.direction === "outbound" ? (
          <Mark icon="send" what={say("outbound")} />
        ) : (
          <Verdict origin={message.origin} />
        )}
      </span>
    </li>
  )

const Mark = ({ icon, what }: { readonly icon: "star" | "clip" | "send"; readonly what: string }) => (
  <span title={what}>
    <Icon name={icon} />
    <span class="hidden-text">{what}</span>
  </span>
)
