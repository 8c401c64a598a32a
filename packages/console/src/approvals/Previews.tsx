/** The attachments of a message that awaits approval, with previews of images and text. */
import { useQuery } from "@tanstack/preact-query"
import { beginning, shownAtMost } from "../client/TextPreview.ts"
import { bytes } from "../texts/Texts.ts"
import { Icon } from "../ui/Icon.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import type { Pending } from "./Completeness.ts"
import { say } from "./reviewing.ts"

type Attachment = Pending["attachments"][number]

/** Maximum size in bytes of an image preview. */
const imageAtMost = 10 * 1024 * 1024

const isImage = ({ content_type, size }: Attachment) =>
  /^image\/(?:png|jpeg|gif|webp|avif)$/.test(content_type) && size <= imageAtMost
const isText = ({ content_type }: Attachment) => /^text\/|[/+](?:json|xml|yaml|csv)$/.test(content_type.toLowerCase())

const TextPreview = ({ at, of }: { readonly at: string; readonly of: Attachment }) => {
  const content = useQuery<string>({
    queryKey: ["attachment", at],
    queryFn: ({ signal }) => beginning(at, signal),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  })
  return (
    <Loaded of={content} lines={2}>
      {(text) => (
        <>
          <pre class="preview" tabIndex={0} aria-label={of.filename ?? say("nameless")}>
            {text}
          </pre>
          {of.size > shownAtMost ? <span class="muted small">{say("preview_cut")}</span> : null}
        </>
      )}
    </Loaded>
  )
}

const One = ({ at, of }: { readonly at: string; readonly of: Attachment }) => {
  const name = of.filename ?? say("nameless")
  return (
    <li class="stack">
      <span class="bar">
        <Icon name="clip" />
        <a class="grow one-line" href={at} download={name}>
          <bdi>{name}</bdi>
        </a>
        <span class="muted small one-line">{of.content_type}</span>
        <span class="muted small number">{bytes(of.size)}</span>
      </span>
      {isImage(of) ? (
        <img class="preview" src={at} alt={name} />
      ) : isText(of) ? (
        <TextPreview at={at} of={of} />
      ) : (
        <span class="muted small">{say("no_preview")}</span>
      )}
    </li>
  )
}

export const Previews = ({ handle, message }: { readonly handle: string; readonly message: Pending }) =>
  message.attachments.length === 0 ? null : (
    <section class="stack" aria-label={say("attachments")}>
      <h3>{say("files", { count: message.attachments.length })}</h3>
      <ul class="box rows previews">
        {message.attachments.map((one) => (
          <One
            key={one.index}
            at={`/api/identities/${encodeURIComponent(handle)}/messages/${message.id}/attachments/${one.index}`}
            of={one}
          />
        ))}
      </ul>
    </section>
  )
