/** Lets a message go out, or refuses it with a reason: the same wherever it is read. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { FormDialog } from "../ui/Dialog.tsx"
import { TextField, wrongAt } from "../ui/Field.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

interface DecideProps {
  readonly handle: string
  readonly id: string
  readonly subject: string
}

const reread = (handle: string) =>
  outdated(
    ["approvals", "messages", "threads"].map((part) => `/api/identities/:handle/${part}`),
    handle,
  )

const Refusing = ({ handle, id, subject, onClose }: DecideProps & { readonly onClose: () => void }) => {
  const [reason, setReason] = useState("")
  const refuse = useAct(async (act) => {
    const body = reason.trim() === "" ? {} : { reason }
    await call("POST /api/identities/:handle/approvals/:id/refuse", { params: { handle, id }, body }, { act })
    tell(say("refused", { subject }))
    await reread(handle)
  })
  return (
    <FormDialog
      title={say("refuse_title", { subject })}
      doing={say("refuse")}
      kind="fatal"
      act={refuse}
      onClose={onClose}
    >
      <p>{say("refuse_why")}</p>
      <TextField
        label={say("reason")}
        value={reason}
        onValue={setReason}
        maxLength={500}
        optional
        autofocus
        wrong={wrongAt(refuse.failure, "/reason")}
      />
    </FormDialog>
  )
}

export const Decide = ({ handle, id, subject: written }: DecideProps) => {
  const subject = written === "" ? say("no_subject") : written
  const [refusing, setRefusing] = useState(false)
  const approve = useAct(async (act) => {
    await call("POST /api/identities/:handle/approvals/:id/approve", { params: { handle, id } }, { act })
    tell(say("approved", { subject }))
    await reread(handle)
  })
  return (
    <>
      <div class="bar">
        <Button busy={approve.busy} icon="check" onClick={() => void approve.run()}>
          {say("approve")}
        </Button>
        <Button kind="danger" onClick={() => setRefusing(true)}>
          {say("refuse")}
        </Button>
      </div>
      <ProblemNote failure={approve.failure} />
      {refusing ? <Refusing handle={handle} id={id} subject={subject} onClose={() => setRefusing(false)} /> : null}
    </>
  )
}
