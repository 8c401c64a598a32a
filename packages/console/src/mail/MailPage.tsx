/** The Mailbox of an Identity. */
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { MailActions, MailNav } from "./MailNav.tsx"
import { MailList } from "./MailList.tsx"
import { approvalsPath } from "../router/Paths.ts"
import { useList } from "../client/Lists.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Note } from "../ui/Page.tsx"
import { say } from "../approvals/texts.ts"

/** A notice that links to the messages that await approval, if there are any. */
const Waiting = ({ handle }: { readonly handle: string }) => {
  const approvals = useList("GET /api/identities/:handle/approvals", { params: { handle }, query: { limit: 50 } })
  const count = approvals.data?.pages.flatMap((page) => page.approvals).length ?? 0
  return count === 0 ? null : (
    <Note tone="warn">
      <div class="bar spread">
        <span>{say("waiting", { count })}</span>
        <ButtonLink small href={`/console${approvalsPath(handle)}`}>
          {say("review")}
        </ButtonLink>
      </div>
    </Note>
  )
}

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
