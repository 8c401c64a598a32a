/** A message in its conversation, opened from a search, an Event or a list. */
import { useCall } from "../client/Queries.ts"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty } from "../ui/Page.tsx"
import { Conversation } from "./Conversation.tsx"
import { Split } from "./Split.tsx"
import { say } from "./texts.ts"

const MessagePage = ({ handle, id }: { readonly handle: string; readonly id: string }) => {
  const message = useCall("GET /api/identities/:handle/messages/:id", { params: { handle, id } })
  return (
    <Split handle={handle} open={id}>
      <Loaded
        of={message}
        lines={8}
        gone={
          <div class="box">
            <Empty icon="mail" title={say("gone")} />
          </div>
        }
      >
        {({ thread_id }) => <Conversation key={id} handle={handle} id={thread_id} at={id} />}
      </Loaded>
    </Split>
  )
}

export default MessagePage
