/** Home: what needs a person, the activity of today, the Identities and recent Events, all from one request. */
import { Sparkline } from "../charts/Sparkline.tsx"
import { type Metric, startsOf, valuesAt } from "../charts/Usage.ts"
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { EventList } from "../events/EventList.tsx"
import { IdentityStatus, TunnelStatus } from "../frame/IdentityStatus.tsx"
import { NewIdentity } from "../identity/NewIdentity.tsx"
import { identityPath } from "../router/Paths.ts"
import { useIdentities } from "../shell/Identities.ts"
import { number } from "../texts/Texts.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Page, Section, Status } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"
import "./home.css"

type Overview = Answer<"GET /api/overview">
type Need = Overview["needs"][number]

/** Text by others inside a sentence: shortened, and isolated from the text direction around it (UAX 9 section 2.4). */
const isolated = (text: string) => `\u2068${text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text}\u2069`

/** Returns the sentence of a need, and the page on which it is resolved. */
const shown = ({ kind, identity, id, name, reason }: Need): readonly [text: string, to: string] => {
  const handle = identity ?? ""
  const at = identityPath(handle)
  switch (kind) {
    case "provisioning":
      return [say("saga_failed", { handle, step: name }), at]
    case "approval":
      return [say("approval_wanted", { handle, subject: isolated(name) }), `${at}/mail/approvals/${id}`]
    case "sign_in":
      return [say("sign_in_wanted", { handle, site: isolated(name) }), `${at}/proof`]
    case "webhook":
      return [say("webhook_failed", { handle, why: reason ?? "" }), `${at}/webhooks/${id}`]
    case "limit":
      return [
        identity === null ? say("limit_near", { limit: name }) : say("limit_near_of", { limit: name, handle }),
        "/settings/limits",
      ]
    case "key":
      return [say("key_expires", { name: isolated(name) }), "/keys"]
  }
}

const Needs = ({ needs }: { readonly needs: ReadonlyArray<Need> }) => (
  <Section title={say("needs")}>
    <ul class="box rows needs">
      {needs.map((need) => {
        const [text, to] = shown(need)
        return (
          <li key={`${need.kind} ${need.identity} ${need.id ?? need.name}`}>
            <Status tone={need.kind === "provisioning" || need.kind === "webhook" ? "bad" : "warn"}>
              <a class="whole" href={`/console${to}`}>
                {text}
              </a>
            </Status>
            <span class="muted small">{need.at === null ? null : <Time at={need.at} />}</span>
          </li>
        )
      })}
    </ul>
  </Section>
)

interface FigureProps {
  readonly label: string
  readonly values: ReadonlyArray<number>
  /** The failures among them, with their text. */
  readonly failed?: readonly [values: ReadonlyArray<number>, text: (count: number) => string]
}

/** A sum of today beside its last days. */
const Figure = ({ label, values, failed }: FigureProps) => {
  const failures = failed?.[0].at(-1) ?? 0
  return (
    <div>
      <dt class="muted small">{label}</dt>
      <dd>
        <span class="today number">{number(values.at(-1) ?? 0)}</span>
        {failed === undefined || failures === 0 ? null : <Status tone="bad">{failed[1](failures)}</Status>}
        <Sparkline values={values} />
      </dd>
    </div>
  )
}

const Today = ({ overview }: { readonly overview: Overview }) => {
  const starts = startsOf("day", 14, overview)
  const of = (metric: Metric) =>
    valuesAt(
      starts,
      overview.series.find((one) => one.metric === metric),
    ).map((value) => value ?? 0)
  const failed = of("deliveries_failed")
  return (
    <Section title={say("today")}>
      <dl class="box figures">
        <Figure
          label={say("received")}
          values={of("mail_received")}
          failed={[of("mail_refused"), (count) => say("rejected", { count })]}
        />
        <Figure label={say("sent")} values={of("mail_sent")} />
        <Figure
          label={say("deliveries")}
          values={of("deliveries_succeeded").map((succeeded, at) => succeeded + failed[at]!)}
          failed={[failed, (count) => say("failed", { count })]}
        />
        <Figure
          label={say("requests")}
          values={of("tunnel_requests")}
          failed={[of("tunnel_errors"), (count) => say("failed", { count })]}
        />
        <Figure label={say("calls")} values={of("api_calls")} />
      </dl>
    </Section>
  )
}

const Agents = ({ identities }: Pick<Overview, "identities">) => (
  <Section
    title={say("agents")}
    actions={
      <ButtonLink small href="/console/identities">
        {say("all")}
      </ButtonLink>
    }
  >
    <Table
      label={say("agents")}
      heads={[say("name"), say("status"), say("tunnel"), say("activity"), say("last_mail")]}
      list
    >
      {identities.map(({ handle, status, tunnel_connected, email, activity, latest_message }) => (
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
            <TunnelStatus connected={tunnel_connected} />
          </td>
          <td>
            <Sparkline values={activity} />
          </td>
          <td>
            {latest_message === null ? (
              <span class="muted">{say("no_mail")}</span>
            ) : (
              <span class="last-mail">
                <bdi class="one-line">
                  {latest_message.subject === "" ? (latest_message.from ?? "") : latest_message.subject}
                </bdi>
                <span class="muted small number">
                  <Time at={latest_message.received_at} />
                </span>
              </span>
            )}
          </td>
        </tr>
      ))}
    </Table>
  </Section>
)

const HomePage = () => {
  const identities = useIdentities()
  const isFirst = identities.data?.identities.length === 0
  const overview = useCall("GET /api/overview", {}, { every: () => 30_000 })
  if (isFirst) {
    return (
      <Page title={say("first_title")} lead={say("first_lead")}>
        <NewIdentity />
      </Page>
    )
  }
  const needs = overview.data?.needs
  return (
    <Page
      title={say("title")}
      heading={
        needs === undefined ? undefined : needs.length === 0 ? say("well") : say("attention", { count: needs.length })
      }
      actions={
        <ButtonLink kind="primary" icon="plus" href="/console/identities/new">
          {say("new")}
        </ButtonLink>
      }
    >
      <Loaded of={overview}>
        {(overview) => (
          <div class="stack-loose">
            {overview.needs.length === 0 ? null : <Needs needs={overview.needs} />}
            <Today overview={overview} />
            <Agents identities={overview.identities} />
            <Section
              title={say("recent")}
              actions={
                <ButtonLink small href="/console/activity">
                  {say("all")}
                </ButtonLink>
              }
            >
              <EventList events={overview.events} />
            </Section>
          </div>
        )}
      </Loaded>
    </Page>
  )
}

export default HomePage
