/** The overview of an Identity: set-up progress, new secrets, addresses, first steps and recent activity. */
import { identityPath } from "../router/Paths.ts"
import { type Answer, call } from "../client/Client.ts"
import { useCall, outdated } from "../client/Queries.ts"
import { useUncached } from "../client/Uncached.ts"
import { LazyUsage } from "../charts/LazyUsage.tsx"
import { EventList } from "../events/EventList.tsx"
import { mailRow } from "../mail/MailRows.tsx"
import { readyTimes } from "../texts/Texts.ts"
import { ButtonLink, Button } from "../ui/Button.tsx"
import { Copyable } from "../ui/Copy.tsx"
import { Loaded, Skeleton } from "../ui/Loaded.tsx"
import { Facts, Section, Note } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { type Identity, IdentityFrame } from "../frame/IdentityFrame.tsx"
import { TunnelStatus } from "../frame/IdentityStatus.tsx"
import { ShowOnce } from "./ShowOnce.tsx"
import { say } from "./texts.ts"
import "./identity.css"
import { useCommand } from "../client/Commands.ts"
import { Icon } from "../ui/Icon.tsx"
import { ProblemNote } from "../ui/Problem.tsx"

type Step = Identity["saga"]["steps"][number]

const signs = { done: "check", failed: "cross", running: "wait", retrying: "again", pending: undefined } as const

const Line = ({ name, status, error }: Step) => {
  const sign = signs[status]
  return (
    <li data-status={status}>
      <span class="sign">{sign === undefined ? null : <Icon name={sign} />}</span>
      <span class="grow">
        {say(`step_${name}`)}
        {error === null || status === "done" ? null : <span class="muted small"> · {error}</span>}
      </span>
      <span class="muted small">{say(`step_${status}`)}</span>
    </li>
  )
}

export const SagaSteps = ({ identity }: { readonly identity: Identity }) => {
  const { handle, saga } = identity
  const command = useCommand(async (key) => {
    await call("POST /api/identities/:handle/retry", { params: { handle } }, { key })
    await outdated(["/api/identities"])
  })
  return (
    <Section title={say(saga.kind === "provisioning" ? "setting_up" : "tearing_down")}>
      <ol class="box steps" aria-live="polite">
        {saga.steps.map((step) => (
          <Line key={step.name} {...step} />
        ))}
      </ol>
      {saga.status === "failed" ? (
        <Note tone="bad">
          <p>{say("saga_failed")}</p>
          <div class="bar">
            <Button icon="again" command={command}>
              {say("again")}
            </Button>
          </div>
        </Note>
      ) : null}
      <ProblemNote failure={command.failure} />
    </Section>
  )
}

readyTimes()

interface OfParts {
  readonly identity: Identity
  /** Undefined if loading failed. */
  readonly mail: Answer<"GET /api/identities/:handle/messages"> | undefined
  readonly webhooks: Answer<"GET /api/identities/:handle/webhooks"> | undefined
}

const Addresses = ({ identity }: { readonly identity: Identity }) => (
  <Section title={say("addresses")}>
    <div class="box padded">
      <Facts
        facts={[
          [
            say("mail_address"),
            <span class="bar">
              <Copyable value={identity.email} what={identity.email} />
              <a href={`/console${identityPath(identity.handle)}/mail/programs`}>{say("mail_programs")}</a>
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

/** First steps that have not been taken yet. */
const Next = ({ identity, mail, webhooks }: OfParts) => {
  const at = `/console${identityPath(identity.handle)}`
  const steps = [
    mail?.messages.length === 0 && (
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
    webhooks?.webhooks.length === 0 && (
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

const LatestMail = ({ identity: { handle }, mail }: OfParts) =>
  mail === undefined || mail.messages.length === 0 ? null : (
    <Section title={say("recent_mail")}>
      <ul class="box rows mails" data-list>
        {mail.messages.map((message) => mailRow({ handle })(message))}
      </ul>
    </Section>
  )

const Latest = ({ handle }: { readonly handle: string }) => {
  const events = useCall("GET /api/events", { query: { handle, limit: 6 } })
  return (
    <Section title={say("recent")}>
      <Loaded of={events}>{({ events }) => <EventList events={events} />}</Loaded>
    </Section>
  )
}

/** Rendered when all data above the fold has loaded, so that the layout does not shift. */
const Ready = ({ identity }: { readonly identity: Identity }) => {
  const { handle } = identity
  const params = { handle }
  const secrets = useUncached((signal) => call("GET /api/identities/:handle/identity-key", { params }, { signal }))
  const mail = useCall("GET /api/identities/:handle/messages", { params, query: { limit: 5 } })
  const webhooks = useCall("GET /api/identities/:handle/webhooks", { params, query: { limit: 1 } })
  if (secrets.isPending || mail.isPending || webhooks.isPending) return <Skeleton lines={8} />
  const of = { identity, mail: mail.data, webhooks: webhooks.data }
  return (
    <div class="stack-loose">
      <Loaded of={secrets}>
        {(found) => <ShowOnce identity={identity} secrets={found} forget={() => secrets.setData({})} />}
      </Loaded>
      <Next {...of} />
      <Addresses identity={identity} />
      <LatestMail {...of} />
      <LazyUsage of="mail" handle={handle} />
      <Latest handle={handle} />
    </div>
  )
}

const IdentityPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="overview">
    {(identity) =>
      identity.status === "ready" ? (
        <Ready key={identity.handle} identity={identity} />
      ) : (
        <SagaSteps identity={identity} />
      )
    }
  </IdentityFrame>
)

export default IdentityPage
