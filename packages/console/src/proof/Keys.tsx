/** The public keys of an Identity: the one with which the service signs, and those that the agent registered. */
import { type Answer, call } from "../client/Client.ts"
import { useCommand } from "../client/Commands.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Section, Status } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

type Key = Answer<"GET /api/identities/:handle/signing-keys">["keys"][number]

const reread = (handle: string) => outdated(["/api/identities/:handle/signing-keys"], handle)

const Row = ({ handle, of }: { readonly handle: string; readonly of: Key }) => {
  const { kid, origin, name, retired_at, published_until } = of
  const isOfAgent = origin === "agent"
  const remove = useCommand(async () => {
    await call("DELETE /api/identities/:handle/signing-keys/:kid", { params: { handle, kid } })
    await reread(handle)
  })
  return (
    <tr>
      <td class="mono" title={kid}>
        {kid.slice(0, 12)}…{name === null ? null : <bdi class="muted small key-name">{name}</bdi>}
      </td>
      <td>{say(isOfAgent ? "of_agent" : "of_service")}</td>
      <td class="mono">{of.jwk.crv}</td>
      <td>
        {retired_at === null ? (
          <Status tone="ok">{say("signs")}</Status>
        ) : (
          <>
            <Status tone="off">{say("retired")}</Status>{" "}
            {published_until === null ? null : (
              <span class="muted small">
                {say("published_until")} <Time at={published_until} form="moment" />
              </span>
            )}
          </>
        )}
      </td>
      <td class="muted">
        <Time at={of.created_at} />
      </td>
      <td class="end">
        {isOfAgent || retired_at !== null ? (
          <ConfirmButton
            small
            kind="danger"
            icon="trash"
            doing={say("remove")}
            name={say("remove_key", { kid: kid.slice(0, 12) })}
            title={say("remove_key", { kid: kid.slice(0, 12) })}
            command={remove}
          >
            <p>{say("remove_why")}</p>
          </ConfirmButton>
        ) : null}
      </td>
    </tr>
  )
}

export const useKeys = (handle: string) => useCall("GET /api/identities/:handle/signing-keys", { params: { handle } })

export const Keys = ({ handle }: { readonly handle: string }) => {
  const keys = useKeys(handle)
  const rotate = useCommand(async (key) => {
    await call("POST /api/identities/:handle/signing-key/rotate", { params: { handle } }, { key })
    await reread(handle)
  })
  return (
    <Section
      title={say("keys")}
      lead={say("keys_why")}
      actions={
        <ConfirmButton
          small
          icon="again"
          doing={say("rotate")}
          title={say("rotate_title")}
          command={rotate}
          onDone={() => tell(say("rotated"))}
        >
          <p>{say("rotate_why")}</p>
        </ConfirmButton>
      }
    >
      <Loaded of={keys} lines={3}>
        {({ keys }) => (
          <Table
            label={say("keys")}
            heads={[say("key"), say("owner"), say("kind"), say("status"), say("created")]}
            acts={say("actions")}
          >
            {keys.map((one) => (
              <Row key={one.kid} handle={handle} of={one} />
            ))}
          </Table>
        )}
      </Loaded>
    </Section>
  )
}
