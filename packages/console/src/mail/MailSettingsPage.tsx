/** Mail settings of an Identity: sending, approval, Allowed Recipients and AI disclosure. */
import { mailPath } from "../router/Paths.ts"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { changing, outdated, useCall } from "../client/Queries.ts"
import { ApprovalRule } from "../approvals/ApprovalRule.tsx"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { TextArea } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
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
  const turn = (outgoing: "active" | "stopped") =>
    changing(
      status,
      { params: { handle } },
      (before) => ({ ...before, outgoing }),
      () => call("PATCH /api/identities/:handle/mail", { params: { handle }, body: { outgoing } }),
    )
  const stop = useCommand(() => turn("stopped"))
  const start = useCommand(() => turn("active"))
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
              <Button kind="danger" icon="stop" command={stop}>
                {say("stop")}
              </Button>
            ) : (
              <ConfirmButton title={say("start_title", { handle })} doing={say("start")} icon="play" command={start}>
                <p>{say("start_why")}</p>
              </ConfirmButton>
            )}
          </div>
        )}
      </Loaded>
      <ProblemNote failure={stop.failure} />
    </Section>
  )
}

type Disclosed = Answer<"GET /api/identities/:handle/ai-disclosure">

const DisclosureForm = ({ handle, disclosed }: OfIdentity & { readonly disclosed: Disclosed }) => {
  const done = async () => {
    tell(say("saved"))
    await outdated(["/api/identities/:handle/ai-disclosure"], handle)
  }
  const { values, field, command } = useForm({ text: disclosed.text }, async (_, body) => {
    await call("PUT /api/identities/:handle/ai-disclosure", { params: { handle }, body })
    await done()
  })
  const reset = useCommand(async () => {
    await call("DELETE /api/identities/:handle/ai-disclosure", { params: { handle } })
    command.form?.discard()
    await done()
  })
  return (
    <CommandForm
      command={command}
      doing={say("save")}
      kind="normal"
      disabled={values.text === disclosed.text}
      actions={
        disclosed.overridden ? (
          <Button kind="plain" command={reset}>
            {say("disclosure_reset")}
          </Button>
        ) : null
      }
    >
      <TextArea label={say("disclosure_text")} rows={3} maxLength={1000} required {...field("text")} />
      <ProblemNote failure={reset.failure} />
    </CommandForm>
  )
}

const Disclosure = ({ handle }: OfIdentity) => {
  const disclosed = useCall("GET /api/identities/:handle/ai-disclosure", { params: { handle } })
  return (
    <Section title={say("disclosure")} lead={say("disclosure_why")}>
      <Loaded of={disclosed}>{(disclosed) => <DisclosureForm handle={handle} disclosed={disclosed} />}</Loaded>
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
