/** The Mailbox of an Identity. */
import { Waiting } from "../approvals/Waiting.tsx"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { ButtonLink } from "../ui/Button.tsx"
import { MailList } from "./MailList.tsx"
import { say } from "./texts.ts"

const MailPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame
    handle={handle}
    part="mail"
    wide
    actions={
      <ButtonLink icon="settings" href={`/console/identities/${encodeURIComponent(handle)}/mail/settings`}>
        {say("settings")}
      </ButtonLink>
    }
  >
    {({ handle, email }) => (
      <div class="stack">
        <Waiting handle={handle} />
        <MailList handle={handle} email={email} />
      </div>
    )}
  </IdentityFrame>
)

export default MailPage
