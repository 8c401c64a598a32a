/** The apps that have access by OAuth, with their permissions. */
import { useState } from "preact/hooks"
import { type Answer, call } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Section } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./appTexts.ts"
import { Ending } from "./Ending.tsx"
import { GrantForm } from "./GrantForm.tsx"

export type Grant = Answer<"GET /api/grants/:id">

const reread = () => outdated(["/api/grants"])

const Row = ({
  of,
  onChange,
  onEnd,
}: {
  readonly of: Grant
  readonly onChange: () => void
  readonly onEnd: () => void
}) => (
  <tr>
    <td>
      <bdi>{of.client_name}</bdi>
      <div class="muted">
        <bdi>{of.redirect_host}</bdi>
      </div>
    </td>
    <td>{of.handles === null ? say("whole") : of.handles.map((handle) => `@${handle}`).join(", ")}</td>
    <td class="mono">
      {of.scopes.join(" ")}
      {of.networks === null ? null : <div class="muted">{of.networks.join(" ")}</div>}
    </td>
    <td>
      {of.last_used_at === null ? <span class="muted">{say("never")}</span> : <Time at={of.last_used_at} />}
      {of.last_used_address === null ? null : <div class="muted mono">{of.last_used_address}</div>}
    </td>
    <td>
      <Time at={of.expires_at} />
    </td>
    <td>
      <Button small aria-label={`${say("change")} ${of.client_name}`} onClick={onChange}>
        {say("change")}
      </Button>{" "}
      <Button kind="danger" small aria-label={`${say("end")} ${of.client_name}`} onClick={onEnd}>
        {say("end")}
      </Button>
    </td>
  </tr>
)

/** Problem details link to `/console/keys/{id}`, which opens the Grant with this id. */
const named = () => /^\/console\/keys\/([0-9a-f-]{36})$/.exec(location.pathname)?.[1]

export const ConnectedApps = () => {
  const grants = useList("GET /api/grants", { query: { limit: 100 } })
  const [changing, setChanging] = useState<string | undefined>(named)
  const [ending, setEnding] = useState<Grant>()
  return (
    <Section title={say("title")} lead={say("lead")}>
      <Loaded of={grants}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.grants)
          const open = all.find(({ id }) => id === changing)
          return (
            <>
              {all.length === 0 ? (
                <p class="muted">{say("none")}</p>
              ) : (
                <Table
                  label={say("title")}
                  heads={[say("app"), say("agents"), say("rights"), say("last_used"), say("until")]}
                  acts={say("actions")}
                >
                  {all.map((grant) => (
                    <Row
                      key={grant.id}
                      of={grant}
                      onChange={() => setChanging(grant.id)}
                      onEnd={() => setEnding(grant)}
                    />
                  ))}
                </Table>
              )}
              <More of={grants} />
              {open === undefined ? null : (
                <GrantForm of={open} onClose={() => setChanging(undefined)} onDone={reread} />
              )}
            </>
          )
        }}
      </Loaded>
      {ending === undefined ? null : (
        <Ending
          title={say("end_title", { name: ending.client_name })}
          why={say("end_why")}
          doing={say("end")}
          done={say("ended", { name: ending.client_name })}
          end={() => call("DELETE /api/grants/:id", { params: { id: ending.id } })}
          list="/api/grants"
          onClose={() => setEnding(undefined)}
        />
      )}
    </Section>
  )
}
