/** A list of conversations: participants, subject, and counts of messages and unread messages. */
import { mailPath } from "../router/Paths.ts"
import type { Answer } from "../client/Client.ts"
import { number } from "../texts/Texts.ts"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"
import "./mail.css"

type Thread = Answer<"GET /api/identities/:handle/threads">["threads"][number]

/** Removes the tag of an address. */
const bare = (address: string) => address.toLowerCase().replace(/\+[^@]*(?=@)/, "")

/** Returns the participants other than the Identity, or all if there are no others. */
const people = ({ participants }: Thread, own: string) => {
  const others = participants.filter(({ address }) => bare(address) !== bare(own))
  return others.length > 0 ? others : participants
}

interface RowsProps {
  readonly handle: string
  /** The Identity's address. */
  readonly own: string
  readonly threads: ReadonlyArray<Thread>
  readonly open?: string | undefined
}

export const ThreadRows = ({ handle, own, threads, open }: RowsProps) => (
  <ul class="box rows mails" data-list>
    {threads.map((thread) => (
      <li
        key={thread.id}
        {...(thread.id === open ? { "data-open": "" } : {})}
        {...(thread.unread > 0 ? { "data-unread": "" } : {})}
      >
        <span class="sender one-line">
          {people(thread, own)
            .slice(0, 3)
            .map(({ address, name }, index) => (
              <span key={address}>
                {index === 0 ? null : ", "}
                <bdi>{name ?? address}</bdi>
              </span>
            ))}
          {thread.participants.length === 0 ? say("no_sender") : null}
        </span>
        <span class="time muted small number">
          <Time at={thread.last_message_at} form="moment" />
        </span>
        <a
          class="whole one-line"
          href={`/console${mailPath(handle)}/threads/${thread.id}`}
          {...(thread.id === open ? { "aria-current": "true" } : {})}
        >
          <bdi class="subject">{thread.subject === "" ? say("no_subject") : thread.subject}</bdi>
          <bdi class="snippet">{thread.snippet}</bdi>
        </a>
        <span class="marks">
          {thread.messages < 2 ? null : (
            <span class="small number" title={say("messages", { count: thread.messages })}>
              <span aria-hidden="true">{number(thread.messages)}</span>
              <span class="hidden-text">{say("messages", { count: thread.messages })}</span>
            </span>
          )}
          {thread.unread === 0 ? null : <span class="count">{say("unread_count", { count: thread.unread })}</span>}
        </span>
      </li>
    ))}
  </ul>
)
