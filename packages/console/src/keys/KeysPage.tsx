/** Admin Keys, Identity Keys and connected apps. */
import { useState } from "preact/hooks"
import { now } from "../client/Clock.ts"
import { type Answer, call } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { useIdentities } from "../shell/Identities.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty, Page, Section, Status } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { ConnectedApps } from "./ConnectedApps.tsx"
import { Ending } from "./Ending.tsx"
import { NewKey, Replacing } from "./NewKey.tsx"
import { say } from "./texts.ts"
import "./keys.css"

type Key = Answer<"GET /api/keys/:id">

interface TableProps {
  readonly label: string
  readonly keys: ReadonlyArray<Key>
  /** Returns the Handle of a key's Identity; undefined for a table of Admin Keys. */
  readonly handleOf?: (key: Key) => string | undefined
  readonly onReplace: (key: Key) => void
  readonly onRevoke: (key: Key) => void
}

const hasEnded = ({ expires_at }: Key) => expires_at !== null && new Date(expires_at).getTime() <= now.value

/** Scopes and networks, as in the API. */
const Rights = ({ of }: { readonly of: Key }) => (
  <>
    {of.scopes.includes("*") ? say("everything") : <span class="mono rights">{of.scopes.join(" ")}</span>}
    {of.networks === null ? null : <div class="muted mono rights">{of.networks.join(" ")}</div>}
  </>
)

const End = ({ of }: { readonly of: Key }) => (
  <>
    {of.expires_at === null ? <span class="muted">{say("never")}</span> : <Time at={of.expires_at} />}
    {hasEnded(of) ? (
      <div>
        <Status tone="warn">{say("ended")}</Status>
      </div>
    ) : of.replaced_by === null ? null : (
      <div>
        <Status tone="warn">{say("replaced")}</Status>
      </div>
    )}
  </>
)

const KeyTable = ({ label, keys, handleOf, onReplace, onRevoke }: TableProps) => (
  <Table
    label={label}
    heads={[
      handleOf === undefined ? say("name") : say("identity"),
      say("begins"),
      say("may"),
      say("created"),
      say("ends"),
      say("last_used"),
    ]}
    acts={say("actions")}
  >
    {keys.map((key) => {
      const handle = handleOf?.(key)
      return (
        <tr key={key.id}>
          <td>
            {handle === undefined ? (
              <bdi>{key.name}</bdi>
            ) : (
              <>
                <a href={`/console/identities/${handle}`}>
                  <bdi>@{handle}</bdi>
                </a>
                {key.name === handle ? null : (
                  <div class="muted">
                    <bdi>{key.name}</bdi>
                  </div>
                )}
              </>
            )}
          </td>
          <td class="mono">{key.token_prefix}…</td>
          <td>
            <Rights of={key} />
          </td>
          <td>
            <Time at={key.created_at} />
          </td>
          <td>
            <End of={key} />
          </td>
          <td>
            {key.last_used_at === null ? <span class="muted">{say("never")}</span> : <Time at={key.last_used_at} />}
            {key.last_used_address === null ? null : (
              <div class="muted">
                <bdi>{say("from", { address: key.last_used_address })}</bdi>
              </div>
            )}
          </td>
          <td>
            <span class="bar">
              {key.replaced_by !== null || hasEnded(key) ? null : (
                <Button small aria-label={`${say("rotate")} ${key.name}`} onClick={() => onReplace(key)}>
                  {say("rotate")}
                </Button>
              )}
              <Button kind="danger" small aria-label={`${say("revoke")} ${key.name}`} onClick={() => onRevoke(key)}>
                {say("revoke")}
              </Button>
            </span>
          </td>
        </tr>
      )
    })}
  </Table>
)

const KeysPage = () => {
  const keys = useList("GET /api/keys", { query: { limit: 100 } })
  const identities = useIdentities()
  const [creating, setCreating] = useState(false)
  const [replacing, setReplacing] = useState<Key>()
  const [revoking, setRevoking] = useState<Key>()
  const ready = identities.data?.identities.filter(({ status }) => status === "ready") ?? []
  const handleOf = (key: Key) => identities.data?.identities.find(({ id }) => id === key.identity_id)?.handle
  return (
    <Page
      title={say("title")}
      lead={say("lead")}
      actions={
        <>
          <ButtonLink href="/console/keys/devices">{say("device")}</ButtonLink>
          <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
            {say("create")}
          </Button>
        </>
      }
    >
      <Loaded of={keys}>
        {({ pages }) => {
          const all = pages.flatMap(({ api_keys }) => api_keys)
          const ofOrg = all.filter(({ scope }) => scope === "org")
          const ofIdentities = all.filter(({ scope }) => scope === "identity")
          return (
            <>
              <Section title={say("admin")}>
                {ofOrg.length === 0 ? (
                  <Empty icon="key" title={say("none")}>
                    {say("none_why")}
                  </Empty>
                ) : (
                  <KeyTable label={say("admin")} keys={ofOrg} onReplace={setReplacing} onRevoke={setRevoking} />
                )}
              </Section>
              <Section title={say("of_identities")} lead={say("of_identities_lead")}>
                {ofIdentities.length === 0 ? (
                  <p class="muted">{say("none_of_identities")}</p>
                ) : (
                  <KeyTable
                    label={say("of_identities")}
                    keys={ofIdentities}
                    handleOf={handleOf}
                    onReplace={setReplacing}
                    onRevoke={setRevoking}
                  />
                )}
              </Section>
              <More of={keys} />
              <ConnectedApps />
            </>
          )
        }}
      </Loaded>
      {creating ? <NewKey handles={ready.map(({ handle }) => handle)} onClose={() => setCreating(false)} /> : null}
      {replacing === undefined ? null : <Replacing of={replacing} onClose={() => setReplacing(undefined)} />}
      {revoking === undefined ? null : (
        <Ending
          title={say("revoke_title", { name: revoking.name })}
          why={say("revoke_why")}
          doing={say("revoke")}
          done={say("revoked", { name: revoking.name })}
          end={() => call("DELETE /api/keys/:id", { params: { id: revoking.id } })}
          list="/api/keys"
          onClose={() => setRevoking(undefined)}
        />
      )}
    </Page>
  )
}

export default KeysPage
