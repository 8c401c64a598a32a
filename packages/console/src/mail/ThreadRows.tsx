/** Conversations as lines: who takes part, what it is about, how many messages, how many of them unread. */
import { mailPath } from "../router/Paths.ts"
import type { Answer } from "../client/Client.ts"
import { number } from "../texts/Texts.ts"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"
import "./mail.css"

type Thread = Answer<"GET /api/identities/:handle/threads">["threads"][number]

/** An address under any of its tags. */
const bare = (address: string) => address.toLowerCase().replace(/\+[^@]*(?=@)/, "")

/** The others; the Identity itself where there is nobody else. */
const people = ({ participants }: Thread, own: string) => {
  const others = participants.filter(({ address }) => bare(address) !== bare(own))
  return others.length > 0 ? others : participants
}

interface RowsProps {
  readonly handle: string
  /** The Identity's own address. */
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
