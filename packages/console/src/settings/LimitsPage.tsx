/** Limits and usage of the account and of each Identity. */
import { identityPath } from "../router/Paths.ts"
import { LazyUsage } from "../charts/LazyUsage.tsx"
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { binaryBytes, number } from "../texts/Texts.ts"
import { Loaded } from "../ui/Loaded.tsx"
import { Section, Status } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { Frame } from "./Frame.tsx"
import { say } from "./texts.ts"
import "./limits.css"

type Use = Answer<"GET /api/limits">["limits"][number]
type OfIdentity = "mail_hourly" | "mailbox_bytes"
type OfAccount = Exclude<Use["name"], OfIdentity>

const near = 0.8
const toneOf = ({ used, limit }: Use) => (used >= limit ? "bad" : used >= limit * near ? "warn" : undefined)

/** The state as text, never by colour alone. */
const Warning = ({ use }: { readonly use: Use }) => {
  const tone = toneOf(use)
  return tone === undefined ? null : <Status tone={tone}>{say(tone === "bad" ? "limit_reached" : "limit_near")}</Status>
}

const Much = ({ use }: { readonly use: Use }) => {
  const amount = (value: number) => (use.unit === "bytes" ? binaryBytes(value) : number(value))
  return (
    <span class="much">
      {say("limit_of", { used: amount(use.used), limit: amount(use.limit) })}
      {use.window === null ? null : <span class="muted"> {say(`per_${use.window}`)}</span>}
    </span>
  )
}

const Meter = ({ use }: { readonly use: Use }) => {
  const share = Math.min(1, use.limit === 0 ? 1 : use.used / use.limit)
  const tone = toneOf(use)
  return (
    <div
      class="meter"
      role="meter"
      aria-label={use.identity === null ? say(`limit_${use.name}`) : `${say(`limit_${use.name}`)}, @${use.identity}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
      {...(tone && { "data-tone": tone })}
    >
      <i style={{ width: `${share === 0 ? 0 : Math.max(0.5, share * 100)}%` }} />
    </div>
  )
}

const isOfAccount = (use: Use): use is Use & { readonly name: OfAccount } => use.identity === null

const Account = ({ uses }: { readonly uses: ReadonlyArray<Use> }) => (
  <ul class="box rows limits">
    {uses.filter(isOfAccount).map((use) => (
      <li key={use.name}>
        <span class="bar">
          <strong>{say(`limit_${use.name}`)}</strong>
          <Warning use={use} />
        </span>
        <Much use={use} />
        <Meter use={use} />
        <span class="when">
          <span>{say(`why_${use.name}`)}</span>
          {use.resets_at === null || use.used === 0 ? null : (
            <span>
              {say("renews")} <Time at={use.resets_at} />
            </span>
          )}
        </span>
      </li>
    ))}
  </ul>
)

const Cell = ({ use }: { readonly use: Use | undefined }) =>
  use === undefined ? (
    <td />
  ) : (
    <td>
      <div class="use-cell">
        <span class="bar">
          <Much use={use} />
          <Warning use={use} />
        </span>
        <Meter use={use} />
      </div>
    </td>
  )

const Identities = ({ uses }: { readonly uses: ReadonlyArray<Use> }) => {
  const of = (handle: string, name: OfIdentity) => uses.find((use) => use.identity === handle && use.name === name)
  return (
    <Table
      label={say("limits_identities")}
      heads={[say("limits_identity"), say("limit_mail_hourly"), say("limit_mailbox_bytes")]}
    >
      {[...new Set(uses.flatMap(({ identity }) => identity ?? []))].map((handle) => (
        <tr key={handle}>
          <td>
            <a href={`/console${identityPath(handle)}`}>
              <bdi>{handle}</bdi>
            </a>
          </td>
          <Cell use={of(handle, "mail_hourly")} />
          <Cell use={of(handle, "mailbox_bytes")} />
        </tr>
      ))}
    </Table>
  )
}

const LimitsPage = () => {
  const limits = useCall("GET /api/limits", {}, { every: () => 15_000 })
  return (
    <Frame>
      <Loaded of={limits} lines={8}>
        {({ limits }) => (
          <div class="stack-loose">
            <Section title={say("limits_account")} lead={say("limits_lead")}>
              <Account uses={limits} />
            </Section>
            {limits.every(({ identity }) => identity === null) ? null : (
              <Section title={say("limits_identities")} lead={say("limits_identities_lead")}>
                <Identities uses={limits} />
              </Section>
            )}
            <LazyUsage of="limits" />
          </div>
        )}
      </Loaded>
    </Frame>
  )
}

export default LimitsPage
