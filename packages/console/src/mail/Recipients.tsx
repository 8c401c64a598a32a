/** The Allowed Recipients of an Identity: add, search, remove, and lift suppressions. */
import { mailPath } from "../router/Paths.ts"
import { useEffect, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { outdated } from "../client/Queries.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { TextField } from "../ui/Field.tsx"
import { Form, useForm } from "../ui/Form.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Section, Status } from "../ui/Page.tsx"
import { ProblemNote, ProblemNotes } from "../ui/Problem.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"
import "./mail.css"

type Recipient = Answer<"GET /api/identities/:handle/allowed-recipients">["allowed_recipients"][number]

const reasons = { manual: "manual", account_owner: "account_owner", inbound: "inbound_reason" } as const

const renew = (handle: string) => outdated(["/api/identities/:handle/allowed-recipients"], handle)

const Adding = ({ handle }: { readonly handle: string }) => {
  const { set, field, command } = useForm({ address: "" }, async (key, values) => {
    const body = { address: values.address.trim() }
    await call("POST /api/identities/:handle/allowed-recipients", { params: { handle }, body }, { key })
    tell(say("added", body))
    set({ address: "" })
    await renew(handle)
  })
  return (
    <Form onDone={() => void command.run()}>
      <div class="bar" style={{ alignItems: "flex-end" }}>
        <div class="grow">
          <TextField label={say("address")} type="email" required {...field("address")} />
        </div>
        <Button type="submit" icon="plus" busy={command.busy}>
          {say("add")}
        </Button>
      </div>
      <ProblemNote failure={command.failure} />
    </Form>
  )
}

const Standing = ({ of: { expires_at, expired, suppressed } }: { readonly of: Recipient }) =>
  suppressed !== null ? (
    <span class="suppression">
      <Status tone="bad">{say("suppressed")}</Status> <Time at={suppressed.since} />
      <bdi class="muted small reply">{suppressed.reason === "" ? say("suppressed_why") : suppressed.reason}</bdi>
    </span>
  ) : expires_at === null ? (
    <>{say("for_good")}</>
  ) : expired ? (
    <Status tone="warn">{say("expired")}</Status>
  ) : (
    <Time at={expires_at} />
  )

/** Returns the text after 250 ms without input. */
const useRested = (typed: string) => {
  const [rested, setRested] = useState(typed)
  useEffect(() => {
    const timer = setTimeout(setRested, 250, typed)
    return () => clearTimeout(timer)
  }, [typed])
  return rested
}

const Acts = ({ handle, of: one }: { readonly handle: string; readonly of: Recipient }) => {
  const { address } = one
  const drop = useCommand(async () => {
    await call("DELETE /api/identities/:handle/allowed-recipients/:address", { params: { handle, address } })
    await renew(handle)
  })
  const lift = useCommand(async () => {
    await call("DELETE /api/identities/:handle/allowed-recipients/:address/suppression", {
      params: { handle, address },
    })
    tell(say("lifted", { address }))
    await renew(handle)
  })
  return (
    <>
      <span class="bar" style={{ justifyContent: "flex-end", flexWrap: "nowrap" }}>
        {one.suppressed === null ? (
          <ButtonLink
            small
            kind="plain"
            icon="send"
            aria-label={say("write_to", { address })}
            href={`/console${mailPath(handle)}/compose?to=${encodeURIComponent(address)}`}
          />
        ) : (
          <Button small command={lift} aria-label={say("lift_one", { address })}>
            {say("lift")}
          </Button>
        )}
        {one.reason === "account_owner" ? null : (
          <Button small kind="plain" icon="trash" command={drop} aria-label={say("drop", { address })} />
        )}
      </span>
      <ProblemNotes of={[drop, lift]} />
    </>
  )
}

export const Recipients = ({ handle }: { readonly handle: string }) => {
  const [typed, setTyped] = useState("")
  const beginning = useRested(typed.trim())
  const recipients = useList("GET /api/identities/:handle/allowed-recipients", {
    params: { handle },
    ...(beginning !== "" && { query: { address: beginning } }),
  })
  return (
    <Section title={say("recipients")} lead={say("recipients_why")}>
      <Adding handle={handle} />
      <input
        class="input"
        style={{ maxWidth: "360px" }}
        type="search"
        aria-label={say("find_recipient")}
        placeholder={say("find_recipient")}
        value={typed}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <Loaded of={recipients}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.allowed_recipients)
          return all.length === 0 ? (
            <p class="muted">{say("no_recipient")}</p>
          ) : (
            <>
              <Table label={say("recipients")} heads={[say("address"), say("why"), say("until")]} acts={say("actions")}>
                {all.map((one) => (
                  <tr key={one.address}>
                    <td class="mono">{one.address}</td>
                    <td>{say(reasons[one.reason])}</td>
                    <td class="muted">
                      <Standing of={one} />
                    </td>
                    <td class="end">
                      <Acts handle={handle} of={one} />
                    </td>
                  </tr>
                ))}
              </Table>
              <More of={recipients} />
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}
