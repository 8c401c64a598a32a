/** A conversation, oldest message first. New messages are expanded, the others collapsed. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { Answer } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { mailPath } from "../router/Paths.ts"
import { go, place } from "../router/Router.ts"
import { Button } from "../ui/Button.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty } from "../ui/Page.tsx"
import { useKeys } from "../ui/Keys.ts"
import { flag, mark } from "./selection/Bulk.ts"
import { MessageItem } from "./Message.tsx"
import { isSelecting, staying } from "./selection/Selection.tsx"
import { say } from "./texts.ts"

type Page = Answer<"GET /api/identities/:handle/threads/:id">
type Summary = Page["messages"][number]

const isNew = ({ direction, seen }: Summary) => direction === "inbound" && !seen

/** Returns the messages that are expanded at first: the requested one, or the last one and recent unread ones. */
const lookedAt = 3
const openAtFirst = (messages: ReadonlyArray<Summary>, at: string | undefined): ReadonlySet<string> => {
  if (messages.some(({ id }) => id === at)) return new Set([at!])
  const shown = [...messages.slice(-1), ...messages.slice(-lookedAt).filter(isNew)]
  return new Set(shown.map(({ id }) => id))
}

interface ShownProps {
  readonly handle: string
  readonly messages: ReadonlyArray<Summary>
  readonly at: string | undefined
}

/** The messages above change their height until they have loaded. */
const loadingMillis = 3_000

/** Scrolls an element into view, and again while the page grows, until the reader does something. */
const inViewWhileLoading = (find: () => HTMLElement | null) => {
  const show = () => find()?.scrollIntoView({ block: "start" })
  const observer = new ResizeObserver(show)
  const stop = () => {
    observer.disconnect()
    clearTimeout(timer)
    for (const type of inputs) removeEventListener(type, stop, true)
  }
  const inputs = ["wheel", "touchstart", "keydown", "pointerdown"]
  for (const type of inputs) addEventListener(type, stop, { capture: true, passive: true })
  const timer = setTimeout(stop, loadingMillis)
  const list = find()?.parentElement
  if (list != null) observer.observe(list)
  return stop
}

const Messages = ({ handle, messages, at }: ShownProps) => {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => openAtFirst(messages, at))
  const wanted = useRef<HTMLDivElement>(null)
  /** The requested message, or the newest one. */
  const shown = messages.some(({ id }) => id === at) ? at : messages.at(-1)?.id
  const last = messages.find(({ id }) => id === shown)
  const write = (how: string) => {
    if (shown !== undefined) go(`${mailPath(handle)}/compose?${how.replace("=", `=${shown}`)}`)
  }
  useKeys({
    r: () => write("reply="),
    a: () => write("reply=&all=1"),
    f: () => write("forward="),
    ...(isSelecting() || last === undefined ? {} : { s: () => void flag(handle, [last.id], !last.flagged) }),
  })
  const before = useRef(new Set(messages.map(({ id }) => id)))
  // Messages that arrive while the page is open are expanded.
  useEffect(() => {
    const fresh = messages.filter(({ id }) => !before.current.has(id))
    if (fresh.length === 0) return
    for (const { id } of fresh) before.current.add(id)
    setOpen(new Set([...open, ...fresh.slice(-1).map(({ id }) => id)]))
  }, [messages])
  useEffect(() => (messages.length > 1 ? inViewWhileLoading(() => wanted.current) : undefined), [shown])
  const toggle = (id: string) => {
    const next = new Set(open)
    if (!next.delete(id)) next.add(id)
    setOpen(next)
  }
  return (
    <>
      {messages.map((summary) => (
        <div key={summary.id} ref={summary.id === shown ? wanted : null} class="message-place">
          <MessageItem
            handle={handle}
            summary={summary}
            open={open.has(summary.id)}
            onToggle={() => toggle(summary.id)}
            onRemoved={() => {
              if (messages.length === 1) go(mailPath(handle) + place.value.search, "replace")
            }}
          />
        </div>
      ))}
    </>
  )
}

/** Maximum number of pages of 100 messages that are loaded without asking. */
const pagesAtOnce = 5

interface ConversationProps {
  readonly handle: string
  readonly id: string
  /** The requested message. */
  readonly at?: string
}

export const Conversation = ({ handle, id, at }: ConversationProps) => {
  const thread = useList("GET /api/identities/:handle/threads/:id", { params: { handle, id }, query: { limit: 100 } })
  const [isReading, setReading] = useState(false)
  const readAll = () => {
    setReading(true)
    void mark(handle, [id], true).finally(() => setReading(false))
  }
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = thread
  const pagesLoaded = thread.data?.pages.length ?? 0
  // The newest message is on the last page.
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && pagesLoaded < pagesAtOnce) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, pagesLoaded])
  return (
    <Loaded
      of={thread}
      lines={8}
      gone={
        <div class="box">
          <Empty icon="mail" title={say("gone")} />
        </div>
      }
    >
      {({ pages }) => {
        const { subject, messages: count } = pages[0]!.thread
        const messages = staying(pages.flatMap((page) => page.messages))
        const unread = messages.filter(isNew)
        return (
          <section class="conversation" aria-label={say("conversation")}>
            <div class="bar spread">
              <h2 class="grow">
                <bdi>{subject === "" ? say("no_subject") : subject}</bdi>
              </h2>
              <span class="bar">
                <span class="muted small">{say("messages", { count })}</span>
                {unread.length < 2 ? null : (
                  <Button small icon="check" busy={isReading} onClick={readAll}>
                    {say("mark_all_read")}
                  </Button>
                )}
              </span>
            </div>
            <Messages key={id} handle={handle} messages={messages} at={at} />
            <More of={thread} />
          </section>
        )
      }}
    </Loaded>
  )
}
