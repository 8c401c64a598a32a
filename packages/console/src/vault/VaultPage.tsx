/** The secrets of one namespace, without their values. */
import { useState } from "preact/hooks"
import { useList } from "../client/Lists.ts"
import { query, refine } from "../router/Router.ts"
import { useIdentities } from "../shell/Identities.ts"
import { bytes } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { Select } from "../ui/Field.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty, Page } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { SecretForm } from "./SecretForm.tsx"
import { reread, SecretView, type Stored } from "./SecretView.tsx"
import { say } from "./texts.ts"

const hrefOf = (name: string, identity: string | undefined) =>
  `/console/vault?${new URLSearchParams({ ...(identity === undefined ? {} : { identity }), secret: name })}`

interface TableProps {
  readonly secrets: ReadonlyArray<Stored>
  readonly identity: string | undefined
}

const SecretTable = ({ secrets, identity }: TableProps) => (
  <Table
    label={say("title")}
    heads={[say("name"), say("description"), say("size"), say("version"), say("changed")]}
    list
  >
    {secrets.map((secret) => (
      <tr key={secret.name} data-link>
        <td>
          <a class="whole mono" href={hrefOf(secret.name, identity)}>
            {secret.name}
          </a>
        </td>
        <td>
          <bdi>{secret.description}</bdi>
        </td>
        <td>{bytes(secret.size)}</td>
        <td>{secret.version}</td>
        <td>
          <Time at={secret.updated_at} />
        </td>
      </tr>
    ))}
  </Table>
)

const VaultPage = () => {
  const identity = query.value.get("identity") ?? undefined
  const name = query.value.get("secret")
  const secrets = useList("GET /api/vault/secrets", {
    query: { limit: 100, ...(identity === undefined ? {} : { identity }) },
  })
  const identities = useIdentities()
  const [writing, setWriting] = useState<"new" | "replacement">()
  const leave = () => refine({ secret: undefined })
  const all = secrets.data?.pages.flatMap((page) => page.secrets) ?? []
  const chosen = name === null ? undefined : all.find((secret) => secret.name === name)
  return (
    <Page
      title={say("title")}
      lead={say("lead")}
      actions={
        <Button kind="primary" icon="plus" onClick={() => setWriting("new")}>
          {say("add")}
        </Button>
      }
    >
      <div class="form">
        <Select
          label={say("namespace")}
          hint={say("namespace_hint")}
          value={identity ?? ""}
          onValue={(handle) => refine({ identity: handle, secret: undefined })}
        >
          <option value="">{say("whole_account")}</option>
          {identities.data?.identities.map(({ handle }) => (
            <option key={handle} value={handle}>
              @{handle}
            </option>
          ))}
        </Select>
      </div>
      <Loaded of={secrets}>
        {() =>
          all.length === 0 ? (
            <Empty icon="vault" title={say("none")}>
              {say("none_why")}
            </Empty>
          ) : (
            <SecretTable secrets={all} identity={identity} />
          )
        }
      </Loaded>
      <More of={secrets} />
      {writing === "new" ? (
        <SecretForm identity={identity} onClose={() => setWriting(undefined)} onDone={() => void reread()} />
      ) : chosen === undefined ? null : writing === "replacement" ? (
        <SecretForm
          identity={identity}
          present={chosen}
          onClose={() => setWriting(undefined)}
          onDone={() => void reread()}
        />
      ) : (
        <SecretView of={chosen} identity={identity} onReplace={() => setWriting("replacement")} onClose={leave} />
      )}
    </Page>
  )
}

export default VaultPage
