/** Posts, notifications and direct messages of an account, in pages of the platform. */
import { useState } from "preact/hooks"
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty } from "../ui/Page.tsx"
import { say as common } from "../ui/texts.ts"
import { Time } from "../ui/Time.tsx"
import { type Platform, titleOf } from "./Platforms.tsx"
import { say } from "./texts.ts"

type Post = Answer<"GET /api/identities/:handle/connectors/:platform/posts">["posts"][number]
type Heard = Answer<"GET /api/identities/:handle/connectors/:platform/notifications">["notifications"][number]
export type View = "posts" | "heard" | "dms"

interface Shown {
  readonly post: Post
  readonly kind?: Heard["kind"]
}

/** Links from other people are only followed to web addresses. */
const isWeb = (url: string | null): url is string => url !== null && /^https?:\/\//i.test(url)

const Item = ({ shown: { post, kind }, platform }: { readonly shown: Shown; readonly platform: Platform }) => (
  <li>
    <span class="bar spread">
      <span class="bar">
        <strong>
          <bdi>{post.author_name ?? post.author}</bdi>
        </strong>
        <bdi class="muted mono small one-line">{post.author}</bdi>
        {kind === undefined ? null : <span class="tag">{say(kind)}</span>}
      </span>
      <span class="bar muted small">
        <Time at={post.created_at} />
        {isWeb(post.url) ? (
          <ButtonLink
            small
            kind="plain"
            icon="out"
            target="_blank"
            rel="noopener noreferrer"
            href={post.url}
            aria-label={say("open", { platform: titleOf(platform) })}
          />
        ) : null}
      </span>
    </span>
    <bdi class="words">{post.text}</bdi>
  </li>
)

interface ListProps {
  readonly handle: string
  readonly platform: Platform
}

const limit = 20

/** Loads one page of a view by the platform's cursor. */
const usePage = (view: View, { handle, platform }: ListProps, cursor: string | null) => {
  const input = {
    params: { handle, platform },
    query: cursor === null ? { limit } : { limit, cursor },
  }
  const posts = useCall("GET /api/identities/:handle/connectors/:platform/posts", input, { enabled: view === "posts" })
  const dms = useCall("GET /api/identities/:handle/connectors/:platform/dms", input, { enabled: view === "dms" })
  const heard = useCall("GET /api/identities/:handle/connectors/:platform/notifications", input, {
    enabled: view === "heard",
  })
  const read = { posts, dms, heard }[view]
  const all: ReadonlyArray<Shown> | undefined =
    view === "heard"
      ? heard.data?.notifications
      : (view === "posts" ? posts : dms).data?.posts.map((post): Shown => ({ post }))
  return { read, all, next: read.data?.cursor ?? null }
}

interface PageProps extends ListProps {
  readonly view: View
  readonly cursor: string | null
  readonly isLast: boolean
  readonly onMore: (cursor: string) => void
}

const Part = ({ view, cursor, isLast, onMore, ...of }: PageProps) => {
  const { read, all, next } = usePage(view, of, cursor)
  return (
    <>
      <Loaded of={{ ...read, data: all }}>
        {(all) =>
          all.length === 0 ? (
            cursor === null ? (
              <div class="box">
                <Empty icon="connector" title={say(`no_${view}`)} />
              </div>
            ) : null
          ) : (
            <ul class="box rows said">
              {all.map((shown) => (
                <Item key={`${shown.kind} ${shown.post.uri}`} shown={shown} platform={of.platform} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isLast && next !== null ? (
        <div class="bar">
          <Button onClick={() => onMore(next)}>{common("more")}</Button>
        </div>
      ) : null}
    </>
  )
}

export const Said = ({ view, ...of }: ListProps & { readonly view: View }) => {
  const [cursors, setCursors] = useState<ReadonlyArray<string | null>>([null])
  return (
    <div class="stack">
      {cursors.map((cursor, index) => (
        <Part
          key={cursor ?? ""}
          {...of}
          view={view}
          cursor={cursor}
          isLast={index === cursors.length - 1}
          onMore={(next) => setCursors([...cursors, next])}
        />
      ))}
    </div>
  )
}
