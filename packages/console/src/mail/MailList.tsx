/** The live message list: conversations by their latest message, or single messages if a filter is active. */
import { useList } from "../client/Lists.ts"
import { go, query } from "../router/Router.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Copyable } from "../ui/Copy.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { LongList, type RowPlace } from "../ui/LongList.tsx"
import { Empty } from "../ui/Page.tsx"
import { Filters, narrowed } from "./Filters.tsx"
import { mailRow } from "./MailRows.tsx"
import { Pick, searchOf, Selection, staying } from "./selection/Selection.tsx"
import { say as sayOfSelection } from "./selection/texts.ts"
import { say } from "./texts.ts"
import { mailPath } from "../router/Paths.ts"
import type { Answer } from "../client/Client.ts"
import { number } from "../texts/Texts.ts"
import { Time } from "../ui/Time.tsx"
import "./mail.css"

type Thread = Answer<"GET /api/identities/:handle/threads">["threads"][number]

/** Removes the tag of an address. */
const bare = (address: string) => address.toLowerCase().replace(/\+[^@]*(?=@)/, "")

/** Returns the participants other than the Identity, or all if there are no others. */
const people = ({ participants }: Thread, own: string) => {
  const others = participants.filter(({ address }) => bare(address) !== bare(own))
  return others.length > 0 ? others : participants
}

interface RowOptions {
  readonly handle: string
  /** The Identity's address. */
  readonly own: string
  readonly open: string | undefined
}

const threadRow =
  ({ handle, own, open }: RowOptions) =>
  (thread: Thread, at: RowPlace) => (
    <li
      key={thread.id}
      data-entry={thread.id}
      {...at}
      {...(thread.id === open ? { "data-open": "" } : {})}
      {...(thread.unread > 0 ? { "data-unread": "" } : {})}
    >
      {pickOf(thread)}
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
        href={`/console${mailPath(handle)}/threads/${thread.id}${searchOf()}`}
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
  )

interface ListProps {
  readonly handle: string
  readonly email: string
  /** The message or conversation that is open beside the list. */
  readonly open?: string | undefined
}

const Nothing = ({ email }: { readonly email: string }) => (
  <Empty
    icon="mail"
    title={say("none")}
    action={
      <span class="bar">
        <Copyable value={email} what={email} />
        <ButtonLink small icon="send" href={`mailto:${email}`}>
          {say("write")}
        </ButtonLink>
      </span>
    }
  >
    {say("none_why", { address: email })}
  </Empty>
)

const Conversations = ({ handle, email, open }: ListProps) => {
  const isArchive = query.value.get("archived") !== null
  const threads = useList("GET /api/identities/:handle/threads", {
    params: { handle },
    query: { limit: 50, archived: isArchive },
  })
  return (
    <Loaded of={threads} lines={8}>
      {({ pages }) => {
        const all = staying(pages.flatMap((page) => page.threads))
        // All conversations of a page may be leaving while further pages exist.
        return all.length === 0 && !threads.hasNextPage ? (
          <div class="box">
            {isArchive ? (
              <Empty icon="mail" title={sayOfSelection("none_archived")}>
                {sayOfSelection("none_archived_why")}
              </Empty>
            ) : (
              <Nothing email={email} />
            )}
          </div>
        ) : (
          <>
            <Selection
              handle={handle}
              entries={all.map(({ id, unread }) => ({ id, isUnread: unread > 0 }))}
              open={open}
              onLeft={() => go(mailPath(handle) + searchOf())}
            />
            <LongList
              of={threads}
              rows={(page) => staying(page.threads)}
              class="box rows mails"
              links
              isOpen={({ id }) => id === open}
            >
              {threadRow({ handle, own: email, open })}
            </LongList>
            <More of={threads} />
          </>
        )
      }}
    </Loaded>
  )
}

const pickOf = ({ id, subject }: { readonly id: string; readonly subject: string }) => (
  <Pick id={id} name={subject === "" ? say("no_subject") : subject} />
)

const Messages = ({ handle, email, open, asked }: ListProps & { readonly asked: object }) => {
  const mail = useList("GET /api/identities/:handle/messages", { params: { handle }, query: { limit: 50, ...asked } })
  const byWayAlone = Object.keys(asked).join() === "direction"
  const isReceived = query.value.get("direction") === "inbound"
  return (
    <Loaded of={mail} lines={8}>
      {({ pages }) => {
        const messages = staying(pages.flatMap((page) => page.messages))
        return (
          <>
            <Selection
              handle={handle}
              entries={messages.map(({ id, direction, seen, flagged }) => ({
                id,
                isUnread: direction === "inbound" && !seen,
                isFlagged: flagged,
              }))}
              open={open}
              onLeft={() => go(mailPath(handle) + searchOf())}
            />
            {messages.length > 0 ? (
              <LongList
                of={mail}
                rows={(page) => staying(page.messages)}
                class="box rows mails"
                links
                isOpen={({ id }) => id === open}
              >
                {mailRow({ handle, open, search: searchOf(), pick: pickOf })}
              </LongList>
            ) : mail.hasNextPage ? null : (
              <div class="box">
                {!byWayAlone ? (
                  <Empty icon="search" title={say("none_match")}>
                    {say("none_match_why")}
                  </Empty>
                ) : isReceived ? (
                  <Nothing email={email} />
                ) : (
                  <Empty icon="send" title={say("none_sent")}>
                    {say("none_sent_why")}
                  </Empty>
                )}
              </div>
            )}
            <More of={mail} />
          </>
        )
      }}
    </Loaded>
  )
}

export const MailList = (props: ListProps) => {
  const asked = narrowed()
  return (
    <>
      <Filters />
      {asked === undefined ? <Conversations {...props} /> : <Messages {...props} asked={asked} />}
    </>
  )
}
