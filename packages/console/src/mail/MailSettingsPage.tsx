/** Who may be written to, what stands under every mail, and whether mail goes out at all. */
import { mailPath } from "../router/Paths.ts"
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, supposed, useCall } from "../client/Queries.ts"
import { ApprovalRule } from "../approvals/ApprovalRule.tsx"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Confirm } from "../ui/Dialog.tsx"
import { Form, TextArea, wrongAt } from "../ui/Field.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Section, Status } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { Recipients } from "./Recipients.tsx"
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
      <ButtonLink icon="left" href={`/console${mailPath(handle)}`}>
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
