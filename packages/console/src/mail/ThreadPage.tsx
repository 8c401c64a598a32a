import { Conversation } from "./Conversation.tsx"
import { Split } from "./Split.tsx"

const ThreadPage = ({ handle, id }: { readonly handle: string; readonly id: string }) => (
  <Split handle={handle} open={id}>
    <Conversation key={id} handle={handle} id={id} />
  </Split>
)

export default ThreadPage
