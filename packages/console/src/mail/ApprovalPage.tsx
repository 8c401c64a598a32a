/** The review of a message that awaits approval. */
import { mailPath } from "../router/Paths.ts"
import { say } from "../approvals/reviewing.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { ButtonLink } from "../ui/Button.tsx"
import { MailActions, MailNav } from "./MailNav.tsx"
import { Addresses, Headers } from "./MessageParts.tsx"
import { useState } from "preact/hooks"
import { Refused } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { HtmlFrame } from "../frame/HtmlFrame.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Facts, Note, Segments } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { incomplete, loadsImages, type Pending } from "../approvals/Completeness.ts"
import { Decide } from "../approvals/Decide.tsx"
import { Previews } from "../approvals/Previews.tsx"
import "../approvals/approvals.css"

const Passages = ({ title, of }: { readonly title: string; readonly of: ReadonlyArray<string> }) =>
  of.length === 0 ? null : (
    <div class="stack">
      <h3>{title}</h3>
      <ul class="passages">
        {of.map((passage, index) => (
          <li key={index}>
            <bdi>{passage}</bdi>
          </li>
        ))}
      </ul>
    </div>
  )

const Differences = ({ of }: { readonly of: Pending["differences"] }) =>
  of === null ? null : (
    <Note tone="warn">
      <strong>{say("differ")}</strong>
      <p>{say("differ_why")}</p>
      <div class="differences">
        <Passages title={say("only_in_html")} of={of.only_in_html} />
        <Passages title={say("only_in_text")} of={of.only_in_text} />
      </div>
    </Note>
  )

type View = "html" | "text" | "headers"

const Content = ({
  handle,
  message,
  images,
  onImages,
}: {
  readonly handle: string
  readonly message: Pending
  readonly images: boolean
  readonly onImages: () => void
}) => {
  const { html, text } = message
  const [view, setView] = useState<View>(html === null ? "text" : "html")
  const views: ReadonlyArray<readonly [View, string]> = [
    ...(html === null ? [] : [["html", say("as_seen")] as const]),
    ["text", say("as_text")],
    ["headers", say("headers")],
  ]
  return (
    <div class="stack">
      <div class="bar">
        <Segments label={say("views")} value={view} options={views} onValue={setView} />
      </div>
      {view === "html" ? (
        <HtmlFrame handle={handle} id={message.id} offer={loadsImages(message)} images={images} onImages={onImages} />
      ) : view === "text" ? (
        <pre class="box padded message-text" dir="auto" tabIndex={0} aria-label={say("as_text")}>
          {text ?? ""}
        </pre>
      ) : (
        <Headers of={message.headers} />
      )}
    </div>
  )
}

const Whole = ({ handle, message }: { readonly handle: string; readonly message: Pending }) => {
  const [images, setImages] = useState(false)
  const missing = incomplete(message, images)
  return (
    <article class="box padded stack" aria-label={message.subject === "" ? say("no_subject") : message.subject}>
      <h2>
        <bdi>{message.subject === "" ? say("no_subject") : message.subject}</bdi>
      </h2>
      <Facts
        facts={[
          message.from !== null && [say("from"), <Addresses of={[message.from]} />],
          [say("to"), <Addresses of={message.to} />],
          message.cc.length > 0 && [say("cc"), <Addresses of={message.cc} />],
          message.bcc.length > 0 && [say("bcc"), <Addresses of={message.bcc} />],
          message.reply_to.length > 0 && [say("reply_to"), <Addresses of={message.reply_to} />],
          [say("asked"), <Time at={message.requested_at} />],
          [say("lapses"), <Time at={message.expires_at} />],
        ]}
      />
      <Differences of={message.differences} />
      <Content handle={handle} message={message} images={images} onImages={() => setImages(true)} />
      <Previews handle={handle} message={message} />
      {missing === undefined ? null : (
        <Note tone="warn">
          <p>{say(`missing_${missing}`)}</p>
          {missing === "images" ? null : (
            <div class="bar">
              <ButtonLink
                small
                href={`/api/identities/${encodeURIComponent(handle)}/messages/${message.id}/raw`}
                download={`${message.id}.eml`}
              >
                {say("original")}
              </ButtonLink>
            </div>
          )}
        </Note>
      )}
      <Decide handle={handle} message={message} complete={missing === undefined} />
    </article>
  )
}

export const Review = ({ handle, id }: { readonly handle: string; readonly id: string }) => {
  const pending = useCall("GET /api/identities/:handle/approvals/:id", { params: { handle, id } })
  const isSettled = pending.error instanceof Refused && pending.error.problem.status === 409
  if (isSettled) {
    return (
      <div class="box">
        <Empty
          icon="check"
          title={say("settled")}
          action={<ButtonLink href={`/console${mailPath(handle)}/${id}`}>{say("to_message")}</ButtonLink>}
        >
          {say("settled_why")}
        </Empty>
      </div>
    )
  }
  return (
    <Loaded
      of={pending}
      lines={8}
      gone={
        <div class="box">
          <Empty icon="mail" title={say("gone")} />
        </div>
      }
    >
      {(message) => <Whole key={message.content_sha256} handle={handle} message={message} />}
    </Loaded>
  )
}

const ApprovalPage = ({ handle, id }: { readonly handle: string; readonly id: string }) => (
  <IdentityFrame handle={handle} part="mail" wide actions={<MailActions handle={handle} />}>
    {({ handle }) => (
      <div class="stack">
        <MailNav handle={handle} />
        <div class="bar">
          <ButtonLink small kind="plain" icon="left" href={`/console${mailPath(handle)}/approvals`}>
            {say("all")}
          </ButtonLink>
        </div>
        <Review key={id} handle={handle} id={id} />
      </div>
    )}
  </IdentityFrame>
)

export default ApprovalPage
