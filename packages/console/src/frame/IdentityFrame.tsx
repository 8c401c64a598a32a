/** The frame of an Identity's pages: name, status and tabs. `children` receives the Identity. */
import { identityPath } from "../router/Paths.ts"
import type { ComponentChildren } from "preact"
import type { Answer } from "../client/Client.ts"
import { known, useCall } from "../client/Queries.ts"
import { identitiesInput } from "../shell/Identities.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Page, Tabs } from "../ui/Page.tsx"
import { IdentityStatus } from "./IdentityStatus.tsx"
import { say } from "./texts.ts"

export type Identity = Answer<"GET /api/identities/:handle">

export const useIdentity = (handle: string) =>
  useCall(
    "GET /api/identities/:handle",
    { params: { handle } },
    {
      // Set-up steps raise no Events, so they are polled.
      every: (known) => (known?.status === "provisioning" || known?.status === "deleting" ? 500 : false),
      // The list of the navigation is shown until the Identity has loaded.
      meanwhile: () => known("GET /api/identities", identitiesInput)?.identities.find((one) => one.handle === handle),
    },
  )

const parts = [
  ["", "overview"],
  ["/mail", "mail"],
  ["/webhooks", "webhooks"],
  ["/tunnel", "tunnel"],
  ["/connectors", "connectors"],
  ["/profile", "profile"],
  ["/proof", "proof"],
  ["/settings", "manage"],
] as const

interface FrameProps {
  readonly handle: string
  /** The current tab, for the window title. */
  readonly part: (typeof parts)[number][1]
  readonly wide?: boolean
  readonly actions?: ComponentChildren
  readonly children: (identity: Identity) => ComponentChildren
}

export const IdentityFrame = ({ handle, part, wide, actions, children }: FrameProps) => {
  const identity = useIdentity(handle)
  const at = identityPath(handle)
  return (
    <Page
      title={part === "overview" ? handle : `${say(part)} · ${handle}`}
      heading={
        <span class="bar">
          <bdi>{identity.data?.handle ?? handle}</bdi>
          {identity.data === undefined ? null : <IdentityStatus status={identity.data.status} />}
        </span>
      }
      {...(wide && { wide })}
      actions={actions}
    >
      <Tabs label={say("tabs", { handle })} tabs={parts.map(([to, text]) => ({ to: `${at}${to}`, text: say(text) }))} />
      <Loaded
        of={identity}
        gone={
          <Empty
            icon="agents"
            title={say("gone")}
            action={<ButtonLink href="/console/identities">{say("to_list")}</ButtonLink>}
          >
            {say("gone_why")}
          </Empty>
        }
      >
        {children}
      </Loaded>
    </Page>
  )
}
