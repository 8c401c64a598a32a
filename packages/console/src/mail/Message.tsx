/**
 * One message. Its text stands as text; its HTML is a document of its own in a frame that runs nothing and may ask nobody
 * (its policy is the server's, `packages/api/src/console/MailBody.ts`).
 */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { go, place } from "../router/Router.ts"
import { bytes } from "../texts/Texts.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Confirm } from "../ui/Dialog.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Facts, Note, Segments } from "../ui/Page.tsx"
import { tell } from "../ui/Toast.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"
import { VerdictNote } from "./Verdict.tsx"

type Message = Answer<"GET /api/identities/:handle/messages/:id">
type Address = Message["to"][number]
type View = "text" | "html" | "headers"

const Addresses = ({ of }: { readonly of: ReadonlyArray<Address> }) => (
  <>
    {of.map(({ name, address }, index) => (
      <span key={index}>
        {index === 0 ? null : ", "}
        {name === null ? null : (
          <>
            <bdi>{name}</bdi>{" "}
          </>
        )}
        <bdi class="mono muted">{name === null ? address : `<${address}>`}</bdi>
      </span>
    ))}
  </>
)

/** The HTML part is shown first only where there is no text, or where its sender is who it says. */
const firstView = ({ text, html, origin }: Message): View =>
  html !== null && (text === null || text.trim() === "" || origin.verdict === "verified") ? "html" : "text"

const Html = ({ handle, message }: { readonly handle: string; readonly message: Message }) => {
  const [images, setImages] = useState(false)
  const at = `/console/mail/${encodeURIComponent(handle)}/${message.id}/body`
  return (
    <>
      {images ? null : (
        <div class="bar spread small muted">
          <span class="grow">{say("images_why")}</span>
          <Button small onClick={() => setImages(true)}>
            {say("images")}
          </Button>
        </div>
      )}
      <iframe
        key={String(images)}
        class="message-frame"
        title={say("frame")}
        sandbox="allow-popups allow-popups-to-escape-sandbox"
        referrerpolicy="no-referrer"
        src={images ? `${at}?images=1` : at}
      />
    </>
  )
}

const Attachments = ({ handle, message }: { readonly handle: string; readonly message: Message }) =>
  message.attachments.length === 0 ? null : (
    <div class="stack">
      <h3>{say("attachments")}</h3>
      <ul class="box rows attachments">
        {message.attachments.map(({ index, filename, content_type, size }) => (
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

const Shown = ({ handle, message }: { readonly handle: string; readonly message: Message }) => {
  const [view, setView] = useState<View>(firstView(message))
  const [removing, setRemoving] = useState(false)
  const list = `/identities/${encodeURIComponent(handle)}/mail${place.value.search}`
  const remove = useAct(async () => {
    await call("DELETE /api/identities/:handle/messages/:id", { params: { handle, id: message.id } })
    go(list, "replace")
    await outdated(["/api/identities/:handle/messages"], handle)
  })
  const views: ReadonlyArray<readonly [View, string]> = [
    ["text", say("text")],
    ...(message.html === null ? [] : [["html", say("html")] as const]),
    ["headers", say("headers")],
  ]
  return (
    <article class="message">
      <h2>
        <bdi>{message.subject === "" ? say("no_subject") : message.subject}</bdi>
      </h2>
      {message.direction === "inbound" ? <VerdictNote origin={message.origin} /> : null}
      <Facts
        facts={[
          [say("from"), message.from === null ? say("no_sender") : <Addresses of={[message.from]} />],
          [say("to"), <Addresses of={message.to} />],
          message.cc.length > 0 && [say("cc"), <Addresses of={message.cc} />],
          message.reply_to.length > 0 && [say("reply_to"), <Addresses of={message.reply_to} />],
          [say("date"), <Time at={message.received_at} form="full" />],
          message.tag !== null && [
            say("tag"),
            <span class="tag">
              <bdi>{message.tag}</bdi>
            </span>,
          ],
        ]}
      />
      <div class="bar spread">
        <Segments label={say("inbox")} value={view} options={views} onValue={setView} />
        <span class="bar">
          <ButtonLink
            small
            href={`/api/identities/${encodeURIComponent(handle)}/messages/${message.id}/raw`}
            download={`${message.id}.eml`}
          >
            {say("raw")} · {bytes(message.size)}
          </ButtonLink>
          <Button small kind="danger" icon="trash" onClick={() => setRemoving(true)}>
            {say("remove")}
          </Button>
        </span>
      </div>
      {view === "html" ? (
        <Html handle={handle} message={message} />
      ) : view === "headers" ? (
        <dl class="box message-headers">
          {message.headers.map(({ name, value }, index) => [
            <dt key={index}>
              <bdi>{name}</bdi>
            </dt>,
            <dd key={`${index}:`}>
              <bdi>{value}</bdi>
            </dd>,
          ])}
        </dl>
      ) : message.text === null || message.text.trim() === "" ? (
        <Note>{say("empty")}</Note>
      ) : (
        <pre class="box message-text" dir="auto">
          {message.text}
        </pre>
      )}
      <Attachments handle={handle} message={message} />
      {removing ? (
        <Confirm
          title={say("remove_title")}
          doing={say("remove")}
          act={remove}
          onClose={() => setRemoving(false)}
          onDone={() => tell(say("removed"))}
        >
          <p>{say("remove_why")}</p>
        </Confirm>
      ) : null}
    </article>
  )
}

export const MessageView = ({ handle, id }: { readonly handle: string; readonly id: string }) => {
  const message = useCall("GET /api/identities/:handle/messages/:id", { params: { handle, id } })
  return (
    <Loaded of={message} gone={<Empty icon="mail" title={say("gone")} />}>
      {(message) => <Shown key={message.id} handle={handle} message={message} />}
    </Loaded>
  )
}
