/** The messages of an Identity that await approval. */
import { Approvals } from "../approvals/Approvals.tsx"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { MailActions, MailNav } from "./MailNav.tsx"

const ApprovalsPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="mail" wide actions={<MailActions handle={handle} />}>
    {({ handle }) => (
      <div class="stack">
        <MailNav handle={handle} />
        <Approvals handle={handle} />
      </div>
    )}
  </IdentityFrame>
)

export default ApprovalsPage
