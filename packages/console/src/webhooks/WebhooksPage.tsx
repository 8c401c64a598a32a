/** The Webhooks of an Identity with their recent deliveries. */
import { identityPath } from "../router/Paths.ts"
import { useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { ButtonLink } from "../ui/Button.tsx"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Section } from "../ui/Page.tsx"
import { type OfWebhook, tones, WebhookStatus } from "./DeliveryItem.tsx"
import { SigningSecret } from "./SigningSecret.tsx"
import { Table } from "../ui/Table.tsx"
import { say } from "./texts.ts"
import "./webhooks.css"

/** The last 20 deliveries as a bar, the newest on the right. */
const Pips = ({ handle, id }: OfWebhook) => {
  const deliveries = useCall("GET /api/identities/:handle/webhooks/:id/deliveries", {
    params: { handle, id },
    query: { limit: 20 },
  }).data?.deliveries
  if (deliveries === undefined) return null
  const failed = deliveries.filter(({ status }) => status === "failed").length
  return (
    <span class="bar">
      <span class="pips" aria-hidden="true">
        {deliveries.toReversed().map(({ id, status }) => (
          <i key={id} data-tone={tones[status]} />
        ))}
      </span>
      <span class="muted small">{failed === 0 ? "" : say("failed_count", { count: failed })}</span>
    </span>
  )
}

const WebhooksPage = ({ handle }: { readonly handle: string }) => {
  const webhooks = useCall("GET /api/identities/:handle/webhooks", { params: { handle }, query: { limit: 200 } })
  const [secret, setSecret] = useState<string>()
  const rotate = useCommand(async (key) => {
    const made = await call("POST /api/identities/:handle/webhook-secret/rotate", { params: { handle } }, { key })
    setSecret(made.signing_secret)
  })
  const at = `/console${identityPath(handle)}/webhooks`
  const add = (
    <ButtonLink kind="primary" icon="plus" href={`${at}/new`}>
      {say("add")}
    </ButtonLink>
  )
  return (
    <IdentityFrame handle={handle} part="webhooks" actions={add}>
      {() => (
        <div class="stack-loose">
          {secret === undefined ? null : <SigningSecret secret={secret} onStored={() => setSecret(undefined)} />}
          <Loaded of={webhooks}>
            {({ webhooks }) =>
              webhooks.length === 0 ? (
                <div class="box">
                  <Empty
                    icon="webhook"
                    title={say("none")}
                    action={<ButtonLink href={`${at}/new`}>{say("add")}</ButtonLink>}
                  >
                    {say("none_why")}
                  </Empty>
                </div>
              ) : (
                <>
                  <Table label={say("title")} heads={[say("url"), say("status"), say("types"), say("recent")]} list>
                    {webhooks.map((webhook) => (
                      <tr key={webhook.id} data-link>
                        <td>
                          <a class="whole mono" href={`${at}/${webhook.id}`}>
                            {webhook.url}
                          </a>
                        </td>
                        <td>
                          <WebhookStatus of={webhook} />
                        </td>
                        <td class="muted">
                          {webhook.event_types.includes("*") ? say("every_type") : webhook.event_types.join(", ")}
                        </td>
                        <td>
                          <Pips handle={handle} id={webhook.id} />
                        </td>
                      </tr>
                    ))}
                  </Table>
                  <Section title={say("secret")} lead={say("rotate_why", { handle })}>
                    <div class="bar">
                      <ConfirmButton doing={say("rotate")} command={rotate}>
                        <p>{say("rotate_why", { handle })}</p>
                      </ConfirmButton>
                    </div>
                  </Section>
                </>
              )
            }
          </Loaded>
        </div>
      )}
    </IdentityFrame>
  )
}

export default WebhooksPage
