/** The review of a message that awaits approval. */
import { mailPath } from "../router/Paths.ts"
import { Review } from "../approvals/Review.tsx"
import { say } from "../approvals/reviewing.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { ButtonLink } from "../ui/Button.tsx"
import { MailActions, MailNav } from "./MailNav.tsx"

const ApprovalPage = ({ handle, id }: { readonly handle: string; readonly id: string }) => (
  <IdentityFrame handle={handle} part="mail" wide actions={<MailActions handle={handle} />}>
    {({ handle }) => (
      <div class="stack">
        <MailNav handle={handle} />
        <div class="bar">
          <ButtonLink small kind="plain" icon="left" href={`/console${mailPath(handle)}/approvals`}>
            {say("all")}
          </ButtonLink>
        </div>
        <Review key={id} handle={handle} id={id} />
      </div>
    )}
  </IdentityFrame>
)

export default ApprovalPage
