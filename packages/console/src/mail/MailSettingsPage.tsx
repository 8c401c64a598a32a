/** Who may be written to, what stands under every mail, and whether mail goes out at all. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, supposed, useCall, useList } from "../client/Queries.ts"
import { ApprovalRule } from "../approvals/ApprovalRule.tsx"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Confirm } from "../ui/Dialog.tsx"
import { Form, TextArea, TextField, wrongAt } from "../ui/Field.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Section, Status } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

interface OfIdentity {
  readonly handle: string
}

const status = "GET /api/identities/:handle/mail"

const Switch = ({ handle }: OfIdentity) => {
  const mail = useCall(status, { params: { handle } })
  const [asking, setAsking] = useState(false)
  const turn = async (outgoing: "active" | "stopped") => {
    const undo = supposed(status, { params: { handle } }, (before) => ({ ...before, outgoing }))
    try {
      await call("PATCH /api/identities/:handle/mail", { params: { handle }, body: { outgoing } })
    } catch (cause) {
      undo()
      throw cause
    } finally {
      await outdated(["/api/identities/:handle/mail"], handle)
    }
  }
  const stop = useAct(() => turn("stopped"))
  const start = useAct(() => turn("active"))
  return (
    <Section title={say("switch")} lead={say("switch_why", { handle })}>
      <Loaded of={mail} lines={1}>
        {({ outgoing, stopped_at, reason }) => (
          <div class="box padded bar spread">
            <span class="bar">
              <Status tone={outgoing === "active" ? "ok" : "bad"}>{say(outgoing)}</Status>
              {stopped_at === null ? null : (
                <span class="muted small">
                  <Time at={stopped_at} />
                </span>
              )}
              {reason === null ? null : <bdi class="muted">{reason}</bdi>}
            </span>
            {outgoing === "active" ? (
              <Button kind="danger" icon="stop" busy={stop.busy} onClick={() => void stop.run()}>
                {say("stop")}
              </Button>
            ) : (
              <Button icon="play" onClick={() => setAsking(true)}>
                {say("start")}
              </Button>
            )}
          </div>
        )}
      </Loaded>
      <ProblemNote failure={stop.failure} />
      {asking ? (
        <Confirm
          title={say("start_title", { handle })}
          doing={say("start")}
          kind="primary"
          act={start}
          onClose={() => setAsking(false)}
        >
          <p>{say("start_why")}</p>
        </Confirm>
      ) : null}
    </Section>
  )
}

const reasons = { manual: "manual", account_owner: "account_owner", inbound: "inbound_reason" } as const

const Recipients = ({ handle }: OfIdentity) => {
  const recipients = useList("GET /api/identities/:handle/allowed-recipients", { params: { handle } })
  const [address, setAddress] = useState("")
  const renew = () => outdated(["/api/identities/:handle/allowed-recipients"], handle)
  const add = useAct(async (act) => {
    const body = { address: address.trim() }
    await call("POST /api/identities/:handle/allowed-recipients", { params: { handle }, body }, { act })
    tell(say("added", body))
    setAddress("")
    await renew()
  })
  const drop = useAct(async (_, address: string) => {
    await call("DELETE /api/identities/:handle/allowed-recipients/:address", { params: { handle, address } })
    await renew()
  })
  return (
    <Section title={say("recipients")} lead={say("recipients_why")}>
      <Form onDone={() => void add.run()}>
        <div class="bar">
          <div class="grow">
            <TextField
              label={say("address")}
              type="email"
              required
              value={address}
              onValue={setAddress}
              wrong={wrongAt(add.failure, "/address")}
            />
          </div>
        </div>
        <div class="bar">
          <Button type="submit" icon="plus" busy={add.busy}>
            {say("add")}
          </Button>
        </div>
      </Form>
      <ProblemNote failure={add.failure ?? drop.failure} />
      <Loaded of={recipients}>
        {({ pages }) => (
          <>
            <div class="table">
              <table>
                <thead>
                  <tr>
                    <th>{say("address")}</th>
                    <th>{say("why")}</th>
                    <th>{say("until")}</th>
                    <th>
                      <span class="hidden-text">{say("actions")}</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {pages
                    .flatMap((page) => page.allowed_recipients)
                    .map(({ address, reason, expired, expires_at }) => (
                      <tr key={address}>
                        <td class="mono">{address}</td>
                        <td>{say(reasons[reason])}</td>
                        <td class="muted">
                          {expires_at === null ? (
                            say("for_good")
                          ) : expired ? (
                            <Status tone="warn">{say("expired")}</Status>
                          ) : (
                            <Time at={expires_at} />
                          )}
                        </td>
                        <td class="end">
                          {reason === "account_owner" ? null : (
                            <Button
                              small
                              kind="plain"
                              icon="trash"
                              aria-label={say("drop", { address })}
                              onClick={() => void drop.run(address)}
                            />
                          )}
                        </td>
                      </tr>
                    ))}
                </tbody>
              </table>
            </div>
            <More of={recipients} />
          </>
        )}
      </Loaded>
    </Section>
  )
}

type Disclosed = Answer<"GET /api/identities/:handle/ai-disclosure">

const DisclosureForm = ({ handle, disclosed }: OfIdentity & { readonly disclosed: Disclosed }) => {
  const [text, setText] = useState(disclosed.text)
  const done = async () => {
    tell(say("saved"))
    await outdated(["/api/identities/:handle/ai-disclosure"], handle)
  }
  const save = useAct(async () => {
    await call("PUT /api/identities/:handle/ai-disclosure", { params: { handle }, body: { text } })
    await done()
  })
  const reset = useAct(async () => {
    await call("DELETE /api/identities/:handle/ai-disclosure", { params: { handle } })
    await done()
  })
  return (
    <Form onDone={() => void save.run()}>
      <TextArea
        label={say("disclosure_text")}
        rows={3}
        maxLength={1000}
        required
        value={text}
        onValue={setText}
        wrong={wrongAt(save.failure, "/text")}
      />
      <ProblemNote failure={save.failure ?? reset.failure} />
      <div class="actions">
        <Button type="submit" busy={save.busy} disabled={text === disclosed.text}>
          {say("save")}
        </Button>
        {disclosed.overridden ? (
          <Button kind="plain" busy={reset.busy} onClick={() => void reset.run()}>
            {say("disclosure_reset")}
          </Button>
        ) : null}
      </div>
    </Form>
  )
}

const Disclosure = ({ handle }: OfIdentity) => {
  const disclosed = useCall("GET /api/identities/:handle/ai-disclosure", { params: { handle } })
  return (
    <Section title={say("disclosure")} lead={say("disclosure_why")}>
      <Loaded of={disclosed}>
        {(disclosed) => <DisclosureForm key={disclosed.text} handle={handle} disclosed={disclosed} />}
      </Loaded>
    </Section>
  )
}

const MailSettingsPage = ({ handle }: OfIdentity) => (
  <IdentityFrame
    handle={handle}
    part="mail"
    actions={
      <ButtonLink icon="left" href={`/console/identities/${encodeURIComponent(handle)}/mail`}>
        {say("back")}
      </ButtonLink>
    }
  >
    {({ handle }) => (
      <div class="stack-loose">
        <Switch handle={handle} />
        <ApprovalRule handle={handle} />
        <Recipients handle={handle} />
        <Disclosure handle={handle} />
      </div>
    )}
  </IdentityFrame>
)

export default MailSettingsPage
