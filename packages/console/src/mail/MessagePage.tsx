/** A message beside the list it is from; alone where there is no room for both. */
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { place } from "../router/Router.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { MailList } from "./MailList.tsx"
import { MessageView } from "./Message.tsx"
import { say } from "./texts.ts"

const MessagePage = ({ handle, id }: { readonly handle: string; readonly id: string }) => (
  <IdentityFrame
    handle={handle}
    part="mail"
    wide
    actions={
      <ButtonLink icon="left" href={`/console/identities/${encodeURIComponent(handle)}/mail${place.value.search}`}>
        {say("back")}
      </ButtonLink>
    }
  >
    {({ handle, email }) => (
      <div class="mail-split">
        <div class="stack">
          <MailList handle={handle} email={email} open={id} />
        </div>
        <MessageView handle={handle} id={id} />
      </div>
    )}
  </IdentityFrame>
)

export default MessagePage
