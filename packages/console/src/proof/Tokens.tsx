/** The identity tokens that were issued or refused, from the audit log. */
import type { Answer } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Section, Status } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"

type Audited = Answer<"GET /api/audit/:id">

const kinds = {
  session: "by_holder",
  admin_key: "by_admin",
  identity_key: "by_agent",
  grant: "by_app",
  imap_password: "by_agent",
  nobody: "by_nobody",
} as const satisfies Record<Audited["actor"]["kind"], string>

const Row = ({ of: { actor, at, code, count, outcome, target } }: { readonly of: Audited }) => (
  <tr>
    <td class="mono">
      <bdi>{target?.type === "token" ? target.name : "–"}</bdi>
    </td>
    <td>
      <Status tone={outcome === "allowed" ? "ok" : "warn"}>
        {say(outcome === "allowed" ? "issued" : "not_issued")}
      </Status>
      {code === null ? null : <div class="muted small mono">{count > 1 ? `${code} × ${count}` : code}</div>}
    </td>
    <td>
      <bdi>{actor.client ?? actor.name ?? say(kinds[actor.kind])}</bdi>
    </td>
    <td class="muted">
      <Time at={at} />
    </td>
  </tr>
)

export const useTokens = (handle: string) =>
  useList("GET /api/audit", { query: { action: "proof.createToken", identity: handle, limit: 10 } })

export const Tokens = ({ handle }: { readonly handle: string }) => {
  const records = useTokens(handle)
  return (
    <Section
      title={say("tokens")}
      lead={say("tokens_why")}
      actions={
        <ButtonLink small href={`/console/activity/audit?identity=${encodeURIComponent(handle)}`}>
          {say("audit_log")}
        </ButtonLink>
      }
    >
      <Loaded of={records} lines={3}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.records)
          return all.length === 0 ? (
            <p class="muted">{say("no_token")}</p>
          ) : (
            <>
              <Table label={say("tokens")} heads={[say("audience"), say("outcome"), say("by"), say("when")]}>
                {all.map((one) => (
                  <Row key={one.id} of={one} />
                ))}
              </Table>
              <More of={records} />
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}
