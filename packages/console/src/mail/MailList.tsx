/** The live message list: conversations by their latest message, or single messages if a filter is active. */
import { useList } from "../client/Queries.ts"
import { place, query } from "../router/Router.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Copyable } from "../ui/Copy.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty } from "../ui/Page.tsx"
import { Filters, narrowed } from "./Filters.tsx"
import { MailRows } from "./MailRows.tsx"
import { ThreadRows } from "./ThreadRows.tsx"
import { say } from "./texts.ts"

interface ListProps {
  readonly handle: string
  readonly email: string
  /** The message or conversation that is open beside the list. */
  readonly open?: string | undefined
}

const Nothing = ({ email }: { readonly email: string }) => (
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
)

const Conversations = ({ handle, email, open }: ListProps) => {
  const threads = useList("GET /api/identities/:handle/threads", { params: { handle }, query: { limit: 50 } })
  return (
    <Loaded of={threads} lines={8}>
      {({ pages }) => {
        const all = pages.flatMap((page) => page.threads)
        return all.length === 0 ? (
          <div class="box">
            <Nothing email={email} />
          </div>
        ) : (
          <>
            <ThreadRows handle={handle} own={email} threads={all} open={open} />
            <More of={threads} />
          </>
        )
      }}
    </Loaded>
  )
}

const Messages = ({ handle, email, open, asked }: ListProps & { readonly asked: object }) => {
  const mail = useList("GET /api/identities/:handle/messages", { params: { handle }, query: { limit: 50, ...asked } })
  const byWayAlone = Object.keys(asked).join() === "direction"
  const isReceived = query.value.get("direction") === "inbound"
  return (
    <Loaded of={mail} lines={8}>
      {({ pages }) => {
        const messages = pages.flatMap((page) => page.messages)
        return (
          <>
            {messages.length > 0 ? (
              <MailRows handle={handle} messages={messages} open={open} search={place.value.search} />
            ) : mail.hasNextPage ? null : (
              <div class="box">
                {!byWayAlone ? (
                  <Empty icon="search" title={say("none_match")}>
                    {say("none_match_why")}
                  </Empty>
                ) : isReceived ? (
                  <Nothing email={email} />
                ) : (
                  <Empty icon="send" title={say("none_sent")}>
                    {say("none_sent_why")}
                  </Empty>
                )}
              </div>
            )}
            <More of={mail} />
          </>
        )
      }}
    </Loaded>
  )
}

export const MailList = (props: ListProps) => {
  const asked = narrowed()
  return (
    <>
      <Filters />
      {asked === undefined ? <Conversations {...props} /> : <Messages {...props} asked={asked} />}
    </>
  )
}
