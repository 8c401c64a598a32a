/** Search and filters of the message list, stored in the query of the page's address. */
import type { Input } from "../client/Client.ts"
import { useEffect, useState } from "preact/hooks"
import { query, refine } from "../router/Router.ts"
import { Button } from "../ui/Button.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Menu } from "../ui/Menu.tsx"
import { say } from "./texts.ts"

type Asked = NonNullable<Input<"GET /api/identities/:handle/messages">["query"]>

/** Returns the active filters; undefined without filters, in which case the list shows conversations. */
export const narrowed = (): Asked | undefined => {
  const given = (name: string) => query.value.get(name) ?? ""
  const direction = given("direction")
  const asked: Asked = {
    ...(given("q") !== "" && { query: given("q") }),
    ...(direction === "inbound" || direction === "outbound" ? { direction } : {}),
    ...(given("unread") !== "" && { seen: false }),
    ...(given("flagged") !== "" && { flagged: true }),
    ...(given("tag") !== "" && { tag: given("tag") }),
    ...(given("label") !== "" && { label: given("label") }),
  }
  return Object.keys(asked).length === 0 ? undefined : asked
}

/** Examples of the search syntax. */
const examples = [
  ["from:ada@example.org", "by_from"],
  ["to: subject:", "by_field"],
  ['"two words"', "by_phrase"],
  ["has:attachment", "by_attachment"],
  ["is:unread is:flagged", "by_mark"],
  ["tag:shop label:done", "by_tag"],
  ["after:2026-11-01", "by_day"],
  ["-from:shop.example", "by_not"],
] as const

const Search = () => {
  const asked = query.value.get("q") ?? ""
  const [typed, setTyped] = useState(asked)
  // A link to another search fills the field.
  useEffect(() => setTyped(asked), [asked])
  useEffect(() => {
    if (typed.trim() === asked) return undefined
    const timer = setTimeout(() => refine({ q: typed.trim() }), 300)
    return () => clearTimeout(timer)
  }, [typed])
  return (
    <>
      <input
        class="input"
        type="search"
        aria-label={say("search")}
        placeholder={say("search")}
        value={typed}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <Menu label={say("search_help")} icon="help">
        <dl class="facts" style={{ padding: "8px", gap: "4px 12px" }} data-stay>
          {examples.map(([example, what]) => [
            <dt key={what}>
              <code>{example}</code>
            </dt>,
            <dd key={`${what}:`} class="muted small">
              {say(what)}
            </dd>,
          ])}
        </dl>
      </Menu>
    </>
  )
}

const Toggle = ({ of, text }: { readonly of: string; readonly text: string }) => {
  const on = query.value.get(of) !== null
  return (
    <Button small aria-pressed={on} onClick={() => refine({ [of]: on ? undefined : "1" })}>
      {text}
    </Button>
  )
}

/** An active filter by tag or label, which a press removes. */
const Chosen = ({ of }: { readonly of: "tag" | "label" }) => {
  const value = query.value.get(of)
  return value === null ? null : (
    <Button small aria-label={say("without", { what: value })} onClick={() => refine({ [of]: undefined })}>
      <Icon name="tag" />
      <span class="muted">{say(of)}</span>
      <bdi class="one-line">{value}</bdi>
      <Icon name="cross" />
    </Button>
  )
}

export const Filters = () => (
  <div class="mail-tools" role="search">
    <Search />
    <Toggle of="unread" text={say("unread")} />
    <Toggle of="flagged" text={say("flagged")} />
    <Chosen of="tag" />
    <Chosen of="label" />
  </div>
)
