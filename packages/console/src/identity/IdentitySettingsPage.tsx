/** Replacing an Identity's secrets, and deleting it. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { identityPath } from "../router/Paths.ts"
import { type Identity, IdentityFrame } from "../frame/IdentityFrame.tsx"
import { go } from "../router/Router.ts"
import { Button } from "../ui/Button.tsx"
import { Confirm } from "../ui/Dialog.tsx"
import { Section } from "../ui/Page.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

const Settings = ({ identity }: { readonly identity: Identity }) => {
  const { handle } = identity
  const params = { handle }
  const [asking, setAsking] = useState<"rotate" | "remove">()
  const rotate = useAct(async (act) => {
    await call("POST /api/identities/:handle/identity-key/rotate", { params }, { act })
    tell(say("rotated"))
    go(identityPath(handle))
  })
  const remove = useAct(async () => {
    await call("DELETE /api/identities/:handle", { params })
    await outdated(["/api/identities"])
    go(identityPath(handle), "replace")
  })
  return (
    <div class="stack-loose">
      <Section title={say("credentials")} lead={say("rotate_why")}>
        <div class="bar">
          <Button onClick={() => setAsking("rotate")} disabled={identity.status !== "ready"}>
            {say("rotate")}
          </Button>
        </div>
      </Section>
      <Section title={say("danger")} lead={say("remove_why", { handle })}>
        <div class="bar">
          <Button kind="danger" icon="trash" onClick={() => setAsking("remove")}>
            {say("remove")}
          </Button>
        </div>
      </Section>
      {asking === "rotate" ? (
        <Confirm
          title={say("rotate")}
          doing={say("rotate")}
          kind="primary"
          act={rotate}
          onClose={() => setAsking(undefined)}
        >
          <p>{say("rotate_why")}</p>
        </Confirm>
      ) : asking === "remove" ? (
        <Confirm
          title={say("remove")}
          doing={say("remove")}
          typed={handle}
          act={remove}
          onClose={() => setAsking(undefined)}
        >
          <p>{say("remove_why", { handle })}</p>
        </Confirm>
      ) : null}
    </div>
  )
}

const IdentitySettingsPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="manage">
    {(identity) => <Settings identity={identity} />}
  </IdentityFrame>
)

export default IdentitySettingsPage
