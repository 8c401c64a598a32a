import { Waiting } from "../approvals/Waiting.tsx"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { MailActions, MailNav } from "./MailNav.tsx"
import { MailList } from "./MailList.tsx"

const MailPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="mail" wide actions={<MailActions handle={handle} />}>
    {({ handle, email }) => (
      <div class="stack">
        <Waiting handle={handle} />
        <MailNav handle={handle} />
        <MailList handle={handle} email={email} />
      </div>
    )}
  </IdentityFrame>
)

export default MailPage
