/** The Mailbox: newest first, live, by word and direction. */
import { useEffect, useState } from "preact/hooks"
import { useList } from "../client/Queries.ts"
import { place, query, refine } from "../router/Router.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Copyable } from "../ui/Copy.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty, Segments } from "../ui/Page.tsx"
import { MailRows } from "./MailRows.tsx"
import { say } from "./texts.ts"

type Direction = "all" | "inbound" | "outbound"

interface ListProps {
  readonly handle: string
  readonly email: string
  readonly open?: string | undefined
}

export const MailList = ({ handle, email, open }: ListProps) => {
  const asked = query.value.get("q") ?? ""
  const [typed, setTyped] = useState(asked)
  const direction = (["inbound", "outbound"] as const).find((one) => one === query.value.get("direction"))
  useEffect(() => {
    if (typed.trim() === asked) return undefined
    const timer = setTimeout(() => refine({ q: typed.trim() }), 300)
    return () => clearTimeout(timer)
  }, [typed, asked])
  const mail = useList("GET /api/identities/:handle/messages", {
    params: { handle },
    query: { limit: 50, ...(asked === "" ? {} : { query: asked }), ...(direction && { direction }) },
  })
  const isNarrowed = asked !== "" || direction !== undefined
  return (
    <>
      <div class="mail-tools">
        <input
          class="input"
          type="search"
          aria-label={say("search")}
          placeholder={say("search")}
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        <Segments<Direction>
          label={say("inbox")}
          value={direction ?? "all"}
          options={[
            ["all", say("all")],
            ["inbound", say("inbound")],
            ["outbound", say("outbound")],
          ]}
          onValue={(value) => refine({ direction: value === "all" ? undefined : value })}
        />
      </div>
      <Loaded of={mail} lines={8}>
        {({ pages }) => {
          const messages = pages.flatMap(({ messages }) => messages)
          if (messages.length > 0) {
            return (
              <>
                <MailRows handle={handle} messages={messages} open={open} search={place.value.search} />
                <More of={mail} />
              </>
            )
          }
          return (
            <div class="box">
              {isNarrowed ? (
                <Empty icon="search" title={say("none_match")}>
                  {say("none_match_why")}
                </Empty>
              ) : (
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
              )}
            </div>
          )
        }}
      </Loaded>
    </>
  )
}
