/** The keys of the account: made, seen, revoked. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, useList } from "../client/Queries.ts"
import { useIdentities } from "../shell/Identities.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Confirm, Dialog } from "../ui/Dialog.tsx"
import { Form, TextField, wrongAt } from "../ui/Field.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty, Note, Page, Section } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Secret } from "../ui/Secret.tsx"
import { say as common } from "../ui/texts.ts"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { ConnectedApps } from "./ConnectedApps.tsx"
import { say } from "./texts.ts"

type Key = Answer<"GET /api/keys/:id">

const reread = () => outdated(["/api/keys"])

/** Names it, and then shows it once: the dialog does not close by itself. */
const NewKey = ({ onClose }: { readonly onClose: () => void }) => {
  const [name, setName] = useState("")
  const [made, setMade] = useState<string>()
  const create = useAct(async (act) => {
    setMade((await call("POST /api/keys", { body: { name } }, { act })).key)
    void reread()
  })
  if (made !== undefined) {
    return (
      <Dialog title={say("made")} onClose={onClose} firm>
        <Note tone="warn">{say("made_once")}</Note>
        <Secret value={made} what={say("key")} />
        <div class="actions">
          <Button kind="primary" onClick={onClose}>
            {say("stored")}
          </Button>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title={say("create")} onClose={onClose}>
      <Form onDone={() => void create.run()}>
        <TextField
          label={say("name")}
          hint={say("name_hint")}
          value={name}
          onValue={setName}
          maxLength={100}
          required
          autofocus
          wrong={wrongAt(create.failure, "/name")}
        />
        <ProblemNote failure={create.failure} />
        <div class="actions">
          <Button onClick={onClose}>{common("cancel")}</Button>
          <Button kind="primary" type="submit" busy={create.busy}>
            {say("create")}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}

const Revoking = ({ of, onClose }: { readonly of: Key; readonly onClose: () => void }) => {
  const revoke = useAct(async () => {
    await call("DELETE /api/keys/:id", { params: { id: of.id } })
    void reread()
  })
  return (
    <Confirm
      title={say("revoke_title", { name: of.name })}
      doing={say("revoke")}
      act={revoke}
      onClose={onClose}
      onDone={() => tell(say("revoked", { name: of.name }))}
    >
      <p>{say("revoke_why")}</p>
    </Confirm>
  )
}

interface TableProps {
  readonly label: string
  readonly keys: ReadonlyArray<Key>
  /** The Handle of a key's Identity; left out where all are the Org's. */
  readonly handleOf?: (key: Key) => string | undefined
  readonly onRevoke: (key: Key) => void
}

const KeyTable = ({ label, keys, handleOf, onRevoke }: TableProps) => (
  <div class="table">
    <table aria-label={label}>
      <thead>
        <tr>
          <th>{handleOf === undefined ? say("name") : say("identity")}</th>
          <th>{say("begins")}</th>
          <th>{say("created")}</th>
          <th>{say("last_used")}</th>
          <th>
            <span class="hidden-text">{say("actions")}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => {
          const handle = handleOf?.(key)
          return (
            <tr key={key.id}>
              <td>
                {handle === undefined ? (
                  <bdi>{key.name}</bdi>
                ) : (
                  <a href={`/console/identities/${handle}`}>
                    <bdi>@{handle}</bdi>
                  </a>
                )}
              </td>
              <td class="mono">{key.token_prefix}…</td>
              <td>
                <Time at={key.created_at} />
              </td>
              <td>
                {key.last_used_at === null ? <span class="muted">{say("never")}</span> : <Time at={key.last_used_at} />}
              </td>
              <td>
                <Button kind="danger" small aria-label={`${say("revoke")} ${key.name}`} onClick={() => onRevoke(key)}>
                  {say("revoke")}
                </Button>
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  </div>
)

const KeysPage = () => {
  const keys = useList("GET /api/keys", { query: { limit: 100 } })
  const identities = useIdentities()
  const [creating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<Key>()
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
                  <KeyTable label={say("admin")} keys={ofOrg} onRevoke={setRevoking} />
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
      {creating ? <NewKey onClose={() => setCreating(false)} /> : null}
      {revoking === undefined ? null : <Revoking of={revoking} onClose={() => setRevoking(undefined)} />}
    </Page>
  )
}

export default KeysPage
