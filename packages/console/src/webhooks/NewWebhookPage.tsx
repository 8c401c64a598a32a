/** Creates a Webhook and shows its signing secret. */
import { useState } from "preact/hooks"
import { type Answer, call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { identityPath } from "../router/Paths.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { go } from "../router/Router.ts"
import { Section } from "../ui/Page.tsx"
import { SigningSecret } from "./SigningSecret.tsx"
import { type NewWebhook, WebhookForm } from "./WebhookForm.tsx"
import { say } from "./texts.ts"

const NewWebhookPage = ({ handle }: { readonly handle: string }) => {
  const [made, setMade] = useState<Answer<"POST /api/identities/:handle/webhooks">>()
  const create = async (key: string, body: NewWebhook) => {
    setMade(await call("POST /api/identities/:handle/webhooks", { params: { handle }, body }, { key }))
    await outdated(["/api/identities/:handle/webhooks"], handle)
  }
  return (
    <IdentityFrame handle={handle} part="webhooks">
      {() =>
        made === undefined ? (
          <Section title={say("add")}>
            <WebhookForm handle={handle} doing={say("create")} submit={create} />
          </Section>
        ) : (
          <SigningSecret
            secret={made.signing_secret}
            onStored={() => go(`${identityPath(handle)}/webhooks/${made.id}`, "replace")}
          />
        )
      }
    </IdentityFrame>
  )
}

export default NewWebhookPage
