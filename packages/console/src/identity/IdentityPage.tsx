/** An Identity at a glance: how it is made, its secrets while they wait, where it is reached, and what to try. */
import { useCall } from "../client/Queries.ts"
import { EventList } from "../events/EventList.tsx"
import { MailRows } from "../mail/MailRows.tsx"
import { ButtonLink } from "../ui/Button.tsx"
import { Copyable } from "../ui/Copy.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Facts, Section } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { type Identity, IdentityFrame } from "../frame/IdentityFrame.tsx"
import { TunnelStatus } from "../frame/IdentityStatus.tsx"
import { SagaSteps } from "./SagaSteps.tsx"
import { ShowOnce } from "./ShowOnce.tsx"
import { say } from "./texts.ts"
import "./identity.css"

const Addresses = ({ identity }: { readonly identity: Identity }) => (
  <Section title={say("addresses")}>
    <div class="box padded">
      <Facts
        facts={[
          [
            say("mail_address"),
            <span class="bar">
              <Copyable value={identity.email} what={identity.email} />
              <a href={`/console/identities/${encodeURIComponent(identity.handle)}/mail/programs`}>
                {say("mail_programs")}
              </a>
            </span>,
          ],
          [
            say("public_profile"),
            <a href={identity.profile_url} target="_blank" rel="noopener">
              {identity.profile_url}
            </a>,
          ],
          [
            say("agent_card"),
            <a href={identity.card_url} target="_blank" rel="noopener">
              {identity.card_url}
            </a>,
          ],
          [
            say("tunnel"),
            <span class="bar">
              <Copyable value={identity.tunnel.url} what={say("public_url")} />
              <TunnelStatus connected={identity.tunnel.connected} />
            </span>,
          ],
          identity.tunnel.port === null ? null : [say("tcp_port"), <code>{identity.tunnel.port}</code>],
          [say("created"), <Time at={identity.created_at} form="full" />],
        ]}
      />
    </div>
  </Section>
)

/** What can be tried, until it was. */
const Next = ({ identity }: { readonly identity: Identity }) => {
  const { handle } = identity
  const at = `/console/identities/${encodeURIComponent(handle)}`
  const mail = useCall("GET /api/identities/:handle/messages", { params: { handle }, query: { limit: 1 } })
  const webhooks = useCall("GET /api/identities/:handle/webhooks", { params: { handle }, query: { limit: 1 } })
  const steps = [
    mail.data?.messages.length === 0 && (
      <li key="mail">
        <div class="grow">
          <strong>{say("first_mail", { address: identity.email })}</strong>
          <p class="muted small">{say("first_mail_why")}</p>
        </div>
        <ButtonLink icon="mail" href={`${at}/mail`}>
          {say("open_mail")}
        </ButtonLink>
      </li>
    ),
    webhooks.data?.webhooks.length === 0 && (
      <li key="webhook">
        <div class="grow">
          <strong>{say("first_webhook")}</strong>
          <p class="muted small">{say("first_webhook_why")}</p>
        </div>
        <ButtonLink icon="webhook" href={`${at}/webhooks/new`}>
          {say("first_webhook")}
        </ButtonLink>
      </li>
    ),
    !identity.tunnel.connected && (
      <li key="tunnel">
        <div class="grow">
          <strong>{say("first_tunnel")}</strong>
          <p class="muted small">{say("first_tunnel_why", { url: identity.tunnel.url })}</p>
        </div>
        <ButtonLink icon="tunnel" href={`${at}/tunnel`}>
          {say("tunnel")}
        </ButtonLink>
      </li>
    ),
  ].filter((step) => step !== false)
  if (steps.length === 0) return null
  return (
    <Section title={say("try_it")}>
      <ul class="box rows next">{steps}</ul>
    </Section>
  )
}

const LatestMail = ({ handle }: { readonly handle: string }) => {
  const mail = useCall("GET /api/identities/:handle/messages", { params: { handle }, query: { limit: 5 } })
  if (mail.data?.messages.length === 0) return null
  return (
    <Section title={say("recent_mail")}>
      <Loaded of={mail}>{({ messages }) => <MailRows handle={handle} messages={messages} />}</Loaded>
    </Section>
  )
}

const Latest = ({ handle }: { readonly handle: string }) => {
  const events = useCall("GET /api/events", { query: { handle, limit: 6 } })
  return (
    <Section title={say("recent")}>
      <Loaded of={events}>{({ events }) => <EventList events={events} />}</Loaded>
    </Section>
  )
}

const IdentityPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="overview">
    {(identity) =>
      identity.status === "ready" ? (
        <div class="stack-loose">
          <ShowOnce identity={identity} />
          <Next identity={identity} />
          <Addresses identity={identity} />
          <LatestMail handle={identity.handle} />
          <Latest handle={identity.handle} />
        </div>
      ) : (
        <SagaSteps identity={identity} />
      )
    }
  </IdentityFrame>
)

export default IdentityPage
