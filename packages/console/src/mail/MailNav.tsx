/** The navigation of a Mailbox: conversations, received, sent, drafts and approvals. */
import { useLater } from "../client/Idle.ts"
import { useList } from "../client/Lists.ts"
import { mailPath } from "../router/Paths.ts"
import { place, query } from "../router/Router.ts"
import { number } from "../texts/Texts.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { say } from "./texts.ts"
import "./mail.css"

const parts = [
  ["", "conversations"],
  ["?direction=inbound", "inbound"],
  ["?direction=outbound", "outbound"],
  ["?archived=1", "in_archive"],
  ["/drafts", "drafts"],
  ["/approvals", "waiting"],
] as const

/** Returns the current section; a message belongs to the list that it was opened from. */
const partAt = (own: string): (typeof parts)[number][0] => {
  const rest = place.value.path.slice(own.length)
  if (rest === "/drafts") return rest
  if (rest.startsWith("/approvals")) return "/approvals"
  if (query.value.get("archived") !== null) return "?archived=1"
  const direction = query.value.get("direction")
  return direction === "inbound" || direction === "outbound" ? `?direction=${direction}` : ""
}

export const MailNav = ({ handle }: { readonly handle: string }) => {
  // Counts are loaded after the list.
  const drafts = useList(
    "GET /api/identities/:handle/drafts",
    { params: { handle }, query: { limit: 100 } },
    { enabled: useLater() },
  )
  const approvals = useList("GET /api/identities/:handle/approvals", { params: { handle }, query: { limit: 50 } })
  const counts: Readonly<Record<string, number>> = {
    drafts: drafts.data?.pages.flatMap((page) => page.drafts).length ?? 0,
    waiting: approvals.data?.pages.flatMap((page) => page.approvals).length ?? 0,
  }
  const own = mailPath(handle)
  const current = partAt(own)
  return (
    <nav class="segments mail-nav" aria-label={say("parts", { handle })}>
      {parts.map(([to, text]) => (
        <a key={text} href={`/console${own}${to}`} {...(to === current ? { "aria-current": "page" } : {})}>
          {say(text)}
          {(counts[text] ?? 0) > 0 ? <span class="count">{number(counts[text]!)}</span> : null}
        </a>
      ))}
    </nav>
  )
}

/** Actions of every Mailbox page. */
export const MailActions = ({ handle }: { readonly handle: string }) => (
  <>
    <ButtonLink icon="settings" href={`/console${mailPath(handle)}/settings`}>
      {say("settings")}
    </ButtonLink>
    <ButtonLink kind="primary" icon="plus" href={`/console${mailPath(handle)}/compose`}>
      {say("compose")}
    </ButtonLink>
  </>
)
