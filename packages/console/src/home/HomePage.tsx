/** Home: items that need attention, the Identities, and recent Events. */
import { identityPath } from "../router/Paths.ts"
import { useCall } from "../client/Queries.ts"
import { type Event, EventList } from "../events/EventList.tsx"
import { type Identity } from "../frame/IdentityFrame.tsx"
import { IdentityStatus, TunnelStatus } from "../frame/IdentityStatus.tsx"
import { NewIdentity } from "../identity/NewIdentity.tsx"
import { useIdentities } from "../shell/Identities.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Page, Section, Status } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"
import "./home.css"

interface Need {
  readonly key: string
  readonly text: string
  readonly to: string
  readonly at: string
}

/** Text by others inside a sentence: shortened, and isolated from the text direction around it (UAX 9 section 2.4). */
const isolated = (text: string) => `\u2068${text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text}\u2069`

const dayMillis = 24 * 3_600_000

/** Returns problems of the last 24 hours that are not resolved. */
const needsOf = (identities: ReadonlyArray<Identity>, events: ReadonlyArray<Event>): ReadonlyArray<Need> => {
  const recent = events.filter(({ created_at }) => Date.now() - Date.parse(created_at) < dayMillis)
  const failed = identities
    .filter(({ saga }) => saga.status === "failed")
    .map(({ handle, saga }) => ({
      key: handle,
      text: say("saga_failed", { handle, step: saga.steps.find(({ status }) => status === "failed")?.name ?? "" }),
      to: identityPath(handle),
      at: saga.started_at,
    }))
  const seen = new Set<string>()
  const others = recent.flatMap((event): ReadonlyArray<Need> => {
    const data = event.data as Readonly<Record<string, unknown>>
    const of = (key: string, text: string, to: string): ReadonlyArray<Need> => {
      if (seen.has(key)) return []
      seen.add(key)
      return [{ key, text, to, at: event.created_at }]
    }
    switch (event.type) {
      case "webhook.failed":
        return of(
          `webhook ${String(data["webhook_id"])}`,
          say("webhook_failed", {
            handle: event.handle ?? "",
            why: typeof data["error"] === "string" ? data["error"] : `HTTP ${String(data["status_code"])}`,
          }),
          `${identityPath(event.handle ?? "")}/webhooks/${String(data["webhook_id"])}?status=failed`,
        )
      // The most recent Event of a message decides.
      case "email.approved":
      case "email.approval_refused":
        seen.add(`approval ${String(data["message_id"])}`)
        return []
      case "email.approval_requested":
        return of(
          `approval ${String(data["message_id"])}`,
          say("approval_wanted", { handle: event.handle ?? "", subject: isolated(String(data["subject"])) }),
          `${identityPath(event.handle ?? "")}/mail/${String(data["message_id"])}`,
        )
      case "limit.near":
        return of(
          `limit ${String(data["limit"])}`,
          say("limit_near", { limit: String(data["limit"]) }),
          "/settings/limits",
        )
      case "tunnel.transfer_blocked":
        return of("transfer", say("blocked"), "/settings/limits")
      default:
        return []
    }
  })
  return [...failed, ...others]
}

const Needs = ({ needs }: { readonly needs: ReadonlyArray<Need> }) => (
  <Section title={say("needs")}>
    <ul class="box rows needs">
      {needs.map(({ key, text, to, at }) => (
        <li key={key}>
          <Status tone="bad">
            <a class="whole" href={`/console${to}`}>
              {text}
            </a>
          </Status>
          <span class="muted small">
            <Time at={at} />
          </span>
        </li>
      ))}
    </ul>
  </Section>
)

const LastMail = ({ handle }: { readonly handle: string }) => {
  const newest = useCall("GET /api/identities/:handle/messages", { params: { handle }, query: { limit: 1 } }).data
    ?.messages
  if (newest === undefined) return null
  const [message] = newest
  if (message === undefined) return <span class="muted">{say("no_mail")}</span>
  return (
    <span class="last-mail">
      <bdi class="one-line">{message.subject === "" ? (message.from?.address ?? "") : message.subject}</bdi>
      <span class="muted small number">
        <Time at={message.received_at} />
      </span>
    </span>
  )
}

const Agents = ({ identities }: { readonly identities: ReadonlyArray<Identity> }) => (
  <Section
    title={say("agents")}
    actions={
      <ButtonLink small href="/console/identities">
        {say("all")}
      </ButtonLink>
    }
  >
    <Table label={say("agents")} heads={[say("name"), say("status"), say("tunnel"), say("last_mail")]} list>
      {identities.slice(0, 12).map(({ handle, status, tunnel, email }) => (
        <tr key={handle} data-link>
          <td>
            <a class="whole" href={`/console${identityPath(handle)}`}>
              <bdi>{handle}</bdi>
            </a>
            <div class="muted small mono">{email}</div>
          </td>
          <td>
            <IdentityStatus status={status} />
          </td>
          <td>
            <TunnelStatus connected={tunnel.connected} />
          </td>
          <td>{status === "ready" ? <LastMail handle={handle} /> : null}</td>
        </tr>
      ))}
    </Table>
  </Section>
)

const HomePage = () => {
  const identities = useIdentities()
  const events = useCall("GET /api/events", { query: { limit: 50 } })
  const all = identities.data?.identities
  if (all?.length === 0) {
    return (
      <Page title={say("first_title")} lead={say("first_lead")}>
        <NewIdentity />
      </Page>
    )
  }
  const needs = all === undefined ? [] : needsOf(all, events.data?.events ?? [])
  return (
    <Page
      title={say("title")}
      heading={
        all === undefined ? undefined : needs.length === 0 ? say("well") : say("attention", { count: needs.length })
      }
      actions={
        <ButtonLink kind="primary" icon="plus" href="/console/identities/new">
          {say("new")}
        </ButtonLink>
      }
    >
      <Loaded of={identities}>
        {({ identities }) => (
          <div class="stack-loose">
            {needs.length === 0 ? null : <Needs needs={needs} />}
            <Agents identities={identities} />
            <Section
              title={say("recent")}
              actions={
                <ButtonLink small href="/console/activity">
                  {say("all")}
                </ButtonLink>
              }
            >
              <Loaded of={events}>{({ events }) => <EventList events={events.slice(0, 10)} />}</Loaded>
            </Section>
          </div>
        )}
      </Loaded>
    </Page>
  )
}

export default HomePage
