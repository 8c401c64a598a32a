/** Rotates the secrets of an Identity, or deletes it. */
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { identityPath } from "../router/Paths.ts"
import { type Identity, IdentityFrame } from "../frame/IdentityFrame.tsx"
import { go } from "../router/Router.ts"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { Section } from "../ui/Page.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

const Settings = ({ identity }: { readonly identity: Identity }) => {
  const { handle } = identity
  const params = { handle }
  const rotate = useCommand(async (key) => {
    await call("POST /api/identities/:handle/identity-key/rotate", { params }, { key })
    tell(say("rotated"))
    go(identityPath(handle))
  })
  const remove = useCommand(async () => {
    await call("DELETE /api/identities/:handle", { params })
    go("/identities", "replace")
    await outdated(["/api/identities"])
  })
  return (
    <div class="stack-loose">
      <Section title={say("credentials")} lead={say("rotate_why")}>
        <div class="bar">
          <ConfirmButton doing={say("rotate")} command={rotate} disabled={identity.status !== "ready"}>
            <p>{say("rotate_why")}</p>
          </ConfirmButton>
        </div>
      </Section>
      <Section title={say("danger")} lead={say("remove_why", { handle })}>
        <div class="bar">
          <ConfirmButton kind="danger" icon="trash" doing={say("remove")} typed={handle} command={remove}>
            <p>{say("remove_why", { handle })}</p>
          </ConfirmButton>
        </div>
      </Section>
    </div>
  )
}

const IdentitySettingsPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="manage">
    {(identity) => <Settings identity={identity} />}
  </IdentityFrame>
)

export default IdentitySettingsPage
