/** Shows the open message beside the list, or alone on a narrow screen. */
import type { ComponentChildren } from "preact"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { mailPath } from "../router/Paths.ts"
import { place } from "../router/Router.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { MailActions, MailNav } from "./MailNav.tsx"
import { MailList } from "./MailList.tsx"
import { say } from "./texts.ts"

interface SplitProps {
  readonly handle: string
  readonly open: string
  readonly children: ComponentChildren
}

export const Split = ({ handle, open, children }: SplitProps) => (
  <IdentityFrame handle={handle} part="mail" wide actions={<MailActions handle={handle} />}>
    {({ handle, email }) => (
      <div class="stack">
        <div class="narrow-bar">
          <ButtonLink small kind="plain" icon="left" href={`/console${mailPath(handle)}${place.value.search}`}>
            {say("back")}
          </ButtonLink>
        </div>
        <MailNav handle={handle} />
        <div class="mail-split">
          <div class="stack">
            <MailList handle={handle} email={email} open={open} />
          </div>
          <div class="stack">{children}</div>
        </div>
      </div>
    )}
  </IdentityFrame>
)
