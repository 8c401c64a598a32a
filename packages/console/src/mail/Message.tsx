/** A message of a conversation, collapsed or expanded. */
import { useEffect } from "preact/hooks"
import { mailPath } from "../router/Paths.ts"
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { bytes, readyTimes } from "../texts/Texts.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Facts, Status } from "../ui/Page.tsx"
import { ProblemNotes } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { remove } from "./selection/Bulk.ts"
import { Body, type Message } from "./Body.tsx"
import { DeliveryState } from "./Delivery.tsx"
import { Labels, useMarking } from "./Marks.tsx"
import { Addresses } from "./MessageParts.tsx"
import { say } from "./texts.ts"
import { AgentMark } from "./AgentMark.tsx"
import { Verdict, VerdictNote } from "./Verdict.tsx"

readyTimes()

type Summary = Answer<"GET /api/identities/:handle/threads/:id">["messages"][number]

/** The number of addresses shown per field. */
const addressesShown = 40

const Attachments = ({ handle, message }: { readonly handle: string; readonly message: Message }) =>
  message.attachments.length === 0 ? null : (
    <div class="stack">
      <h4>{say("attachments")}</h4>
      <ul class="box rows attachments">
        {message.attachments.slice(0, 200).map(({ index, filename, content_type, size }) => (
          <li key={index}>
            <Icon name="clip" />
            <a
              class="grow one-line"
              href={`/api/identities/${encodeURIComponent(handle)}/messages/${message.id}/attachments/${index}`}
              download={filename ?? say("nameless")}
            >
              <bdi>{filename ?? say("nameless")}</bdi>
            </a>
            <span class="muted small one-line">{content_type}</span>
            <span class="muted small number">{bytes(size)}</span>
          </li>
        ))}
      </ul>
    </div>
  )

interface ActionsProps {
  readonly handle: string
  readonly message: Message
  readonly onRemoved: () => void
}

const Actions = ({ handle, message, onRemoved }: ActionsProps) => {
  const seen = useMarking(handle, message.id)
  const flagged = useMarking(handle, message.id)
  const labels = useMarking(handle, message.id)
  const write = (how: string) => `/console${mailPath(handle)}/compose?${how}=${message.id}`
  const isToMany = message.to.length + message.cc.length > 1
  return (
    <div class="stack">
      <div class="bar spread">
        <span class="bar">
          <ButtonLink icon="reply" href={write("reply")}>
            {say("reply")}
          </ButtonLink>
          {isToMany ? <ButtonLink href={`${write("reply")}&all=1`}>{say("reply_all")}</ButtonLink> : null}
          <ButtonLink icon="forward" href={write("forward")}>
            {say("forward")}
          </ButtonLink>
        </span>
        <span class="bar">
          {message.direction === "inbound" ? (
            <Button small kind="plain" busy={seen.busy} onClick={() => void seen.run({ seen: !message.seen })}>
              {say(message.seen ? "mark_unread" : "mark_read")}
            </Button>
          ) : null}
          <Button
            small
            kind="plain"
            icon="star"
            aria-pressed={message.flagged}
            busy={flagged.busy}
            onClick={() => void flagged.run({ flagged: !message.flagged })}
          >
            {say(message.flagged ? "flagged" : "flag")}
          </Button>
          <Labels handle={handle} labels={message.labels} mark={labels} />
          <Button
            small
            kind="plain"
            icon="trash"
            busy={false}
            aria-label={say("remove")}
            onClick={() => {
              remove(handle, [message.id])
              onRemoved()
            }}
          />
        </span>
      </div>
      <ProblemNotes of={[seen, flagged, labels]} />
    </div>
  )
}

/**
 * Marks a received message as read when it is opened and the page is visible. A message that is marked as unread afterwards
 * stays unread.
 */
const useReading = (handle: string, { id, direction, seen }: Message) => {
  const { run } = useMarking(handle, id)
  useEffect(() => {
    if (direction !== "inbound" || seen) return undefined
    const read = () => {
      if (document.visibilityState !== "visible") return
      document.removeEventListener("visibilitychange", read)
      void run({ seen: true })
    }
    document.addEventListener("visibilitychange", read)
    read()
    return () => document.removeEventListener("visibilitychange", read)
  }, [])
}

const Whole = ({ handle, message, onRemoved }: ActionsProps) => {
  useReading(handle, message)
  const isOutbound = message.direction === "outbound"
  const isSent = message.status !== "awaiting_approval" && message.status !== "refused"
  const switched = useCall("GET /api/identities/:handle/mail", { params: { handle } }, { enabled: isOutbound })
  return (
    <div class="message-whole">
      {isOutbound ? (
        <DeliveryState handle={handle} message={message} isStopped={switched.data?.outgoing === "stopped"} />
      ) : (
        <VerdictNote origin={message.origin} />
      )}
      <Facts
        facts={[
          [say("from"), message.from === null ? say("no_sender") : <Addresses of={[message.from]} />],
          message.origin.agent !== undefined && ["Agent", <AgentMark agent={message.origin.agent} />],
          [say("to"), <Addresses of={message.to} atMost={addressesShown} />],
          message.cc.length > 0 && [say("cc"), <Addresses of={message.cc} atMost={addressesShown} />],
          message.bcc.length > 0 && [say("bcc"), <Addresses of={message.bcc} atMost={addressesShown} />],
          message.reply_to.length > 0 && [say("reply_to"), <Addresses of={message.reply_to} atMost={addressesShown} />],
          [say(isOutbound ? (isSent ? "written" : "created") : "date"), <Time at={message.received_at} form="full" />],
          message.tags.length > 0 && [
            say(message.tags.length === 1 ? "tag" : "tags"),
            <span class="bar">
              {message.tags.map((tag) => (
                <a class="tag" key={tag} href={`/console${mailPath(handle)}?tag=${encodeURIComponent(tag)}`}>
                  <bdi class="one-line">{tag}</bdi>
                </a>
              ))}
            </span>,
          ],
        ]}
      />
      <Body handle={handle} message={message} />
      <Attachments handle={handle} message={message} />
      <Actions handle={handle} message={message} onRemoved={onRemoved} />
    </div>
  )
}

const Opened = ({ handle, id, onRemoved }: { handle: string; id: string; onRemoved: () => void }) => {
  const message = useCall("GET /api/identities/:handle/messages/:id", { params: { handle, id } })
  return (
    <Loaded of={message} gone={<Empty icon="mail" title={say("gone")} />}>
      {(message) => <Whole handle={handle} message={message} onRemoved={onRemoved} />}
    </Loaded>
  )
}

interface MessageProps {
  readonly handle: string
  readonly summary: Summary
  readonly open: boolean
  readonly onToggle: () => void
  readonly onRemoved: () => void
}

export const MessageItem = ({ handle, summary, open, onToggle, onRemoved }: MessageProps) => {
  const isUnread = summary.direction === "inbound" && !summary.seen
  const sender = summary.from === null ? say("no_sender") : (summary.from.name ?? summary.from.address)
  return (
    <article class="box message" aria-label={sender} {...(open ? { "data-open": "" } : {})}>
      <h3 class="message-head" {...(isUnread ? { "data-unread": "" } : {})}>
        <button type="button" aria-expanded={open} onClick={onToggle}>
          <bdi class="sender one-line">{sender}</bdi>
          {open ? (
            <span class="grow" />
          ) : (
            <bdi class="grow one-line snippet">{summary.text_reply ?? summary.snippet}</bdi>
          )}
          <span class="marks">
            {isUnread ? <span class="count">{say("unread")}</span> : null}
            {summary.flagged ? <Icon name="star" /> : null}
            {summary.attachments.length > 0 ? <Icon name="clip" /> : null}
            {summary.direction === "outbound" ? (
              <Status tone="off">{say("sent_by_it")}</Status>
            ) : (
              <Verdict origin={summary.origin} />
            )}
          </span>
          <span class="muted small number">
            <Time at={summary.received_at} form="moment" />
          </span>
        </button>
      </h3>
      {open ? <Opened handle={handle} id={summary.id} onRemoved={onRemoved} /> : null}
    </article>
  )
}
