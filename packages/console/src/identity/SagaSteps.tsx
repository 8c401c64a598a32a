/** The live steps of set-up or deletion. */
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Note, Section } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import type { Identity } from "../frame/IdentityFrame.tsx"
import { say } from "./texts.ts"
import "./identity.css"

type Step = Identity["saga"]["steps"][number]

const signs = { done: "check", failed: "cross", running: "wait", retrying: "again", pending: undefined } as const

const Line = ({ name, status, error }: Step) => {
  const sign = signs[status]
  return (
    <li data-status={status}>
      <span class="sign">{sign === undefined ? null : <Icon name={sign} />}</span>
      <span class="grow">
        {say(`step_${name}`)}
        {error === null || status === "done" ? null : <span class="muted small"> · {error}</span>}
      </span>
      <span class="muted small">{say(`step_${status}`)}</span>
    </li>
  )
}

export const SagaSteps = ({ identity }: { readonly identity: Identity }) => {
  const { handle, saga } = identity
  const command = useCommand(async (key) => {
    await call("POST /api/identities/:handle/retry", { params: { handle } }, { key })
    await outdated(["/api/identities"])
  })
  return (
    <Section title={say(saga.kind === "provisioning" ? "setting_up" : "tearing_down")}>
      <ol class="box steps" aria-live="polite">
        {saga.steps.map((step) => (
          <Line key={step.name} {...step} />
        ))}
      </ol>
      {saga.status === "failed" ? (
        <Note tone="bad">
          <p>{say("saga_failed")}</p>
          <div class="bar">
            <Button icon="again" command={command}>
              {say("again")}
            </Button>
          </div>
        </Note>
      ) : null}
      <ProblemNote failure={command.failure} />
    </Section>
  )
}
