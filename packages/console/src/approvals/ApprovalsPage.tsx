/** What waits for a person before it goes out, of one Identity. */
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { Approvals } from "./Approvals.tsx"

const ApprovalsPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="mail">
    {({ handle }) => <Approvals handle={handle} />}
  </IdentityFrame>
)

export default ApprovalsPage
