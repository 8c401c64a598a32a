/** The content of a message: text with folded quotes, HTML in a frame, headers, or source. */
import { useQuery } from "@tanstack/preact-query"
import { useState } from "preact/hooks"
import { beginning, shownAtMost } from "../client/TextPreview.ts"
import type { Answer } from "../client/Client.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Note, Segments } from "../ui/Page.tsx"
import { bytes } from "../texts/Texts.ts"
import { HtmlFrame } from "../frame/HtmlFrame.tsx"
import { Headers } from "./MessageParts.tsx"
import { say } from "./texts.ts"

export type Message = Answer<"GET /api/identities/:handle/messages/:id">
type View = "text" | "html" | "headers" | "source"

interface OfMessage {
  readonly handle: string
  readonly message: Message
}

/** Shows the HTML part first only if there is no text or the sender is verified. */
const firstView = ({ text, html, origin, direction }: Message): View =>
  html !== null && (text === null || text.trim() === "" || (direction === "inbound" && origin.verdict === "verified"))
    ? "html"
    : "text"

/** Whether the HTML may refer to remote images; false positives only cost a button. */
const hasImages = (html: string) => /<img/i.test(html) && /https?:/i.test(html)

const Html = ({ handle, message }: OfMessage) => {
  const [images, setImages] = useState(false)
  return (
    <HtmlFrame
      handle={handle}
      id={message.id}
      offer={hasImages(message.html ?? "")}
      images={images}
      onImages={() => setImages(true)}
    />
  )
}

const Text = ({ message: { text, text_reply } }: { readonly message: Message }) => {
  const [whole, setWhole] = useState(false)
  if (text === null || text.trim() === "") return <Note>{say("empty")}</Note>
  const isFolded = text_reply !== null && text_reply.trim() !== "" && text_reply.trim() !== text.trim()
  const shown = isFolded && !whole ? text_reply : text
  return (
    <>
      <pre class="message-text" dir="auto" tabIndex={0} aria-label={say("text")}>
        {shown.slice(0, shownAtMost)}
      </pre>
      <div class="bar">
        {isFolded ? (
          <Button small kind="plain" icon="more" aria-expanded={whole} onClick={() => setWhole(!whole)}>
            {say(whole ? "fold_quotes" : "show_quotes")}
          </Button>
        ) : null}
        {shown.length > shownAtMost ? <span class="muted small">{say("cut")}</span> : null}
      </div>
    </>
  )
}

const Source = ({ handle, message }: OfMessage) => {
  const path = `/api/identities/${encodeURIComponent(handle)}/messages/${message.id}/raw`
  const source = useQuery<string>({
    queryKey: ["source", path],
    queryFn: ({ signal }) => beginning(path, signal),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  })
  return (
    <>
      <Loaded of={source} lines={8}>
        {(text) => (
          <pre class="box message-source" tabIndex={0} aria-label={say("source")}>
            {text}
          </pre>
        )}
      </Loaded>
      <div class="bar">
        <ButtonLink small href={path} download={`${message.id}.eml`}>
          {say("raw")} · {bytes(message.size)}
        </ButtonLink>
        {message.size > shownAtMost ? <span class="muted small">{say("cut")}</span> : null}
      </div>
    </>
  )
}

export const Body = (props: OfMessage) => {
  const { message } = props
  const [view, setView] = useState<View>(firstView(message))
  const views: ReadonlyArray<readonly [View, string]> = [
    ["text", say("text")],
    ...(message.html === null ? [] : [["html", say("html")] as const]),
    ["headers", say("headers")],
    ["source", say("source")],
  ]
  return (
    <div class="stack">
      <div class="bar">
        <Segments label={say("views")} value={view} options={views} onValue={setView} />
      </div>
      {view === "html" ? (
        <Html {...props} />
      ) : view === "headers" ? (
        <Headers of={message.headers} />
      ) : view === "source" ? (
        <Source {...props} />
      ) : (
        <Text message={message} />
      )}
    </div>
  )
}
