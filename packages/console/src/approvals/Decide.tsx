/** Approves a message, or refuses it with a reason. Both name the hash of the content that the page shows. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { mailPath } from "../router/Paths.ts"
import { go } from "../router/Router.ts"
import { Button } from "../ui/Button.tsx"
import { FormDialog } from "../ui/Dialog.tsx"
import { TextField, wrongAt } from "../ui/Field.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { tell } from "../ui/Toast.tsx"
import type { Pending } from "./Completeness.ts"
import { say } from "./reviewing.ts"

interface DecideProps {
  readonly handle: string
  readonly message: Pending
  /** Whether the page shows all of the message. */
  readonly complete: boolean
}

/** Goes to the message, which says what becomes of it. */
const leave = async (handle: string, id: string) => {
  go(`${mailPath(handle)}/${id}`, "replace")
  await outdated(
    ["approvals", "messages", "threads"].map((part) => `/api/identities/:handle/${part}`),
    handle,
  )
}

/** A refusal may be about content that has changed: the page reads it again. */
const rereading = async (handle: string, decide: () => Promise<unknown>) => {
  try {
    await decide()
  } catch (cause) {
    await outdated(["/api/identities/:handle/approvals"], handle)
    throw cause
  }
}

type RefusingProps = Omit<DecideProps, "complete"> & { readonly subject: string; readonly onClose: () => void }

const Refusing = ({ handle, message: { id, content_sha256 }, subject, onClose }: RefusingProps) => {
  const [reason, setReason] = useState("")
  const refuse = useAct(async (act) => {
    const body = { content_sha256, ...(reason.trim() === "" ? {} : { reason }) }
    await rereading(handle, () =>
      call("POST /api/identities/:handle/approvals/:id/refuse", { params: { handle, id }, body }, { act }),
    )
    tell(say("refused", { subject }))
    await leave(handle, id)
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

export const Decide = ({ handle, message, complete }: DecideProps) => {
  const { id, content_sha256 } = message
  const subject = message.subject === "" ? say("no_subject") : message.subject
  const [refusing, setRefusing] = useState(false)
  const approve = useAct(async (act) => {
    const input = { params: { handle, id }, body: { content_sha256 } }
    await rereading(handle, () => call("POST /api/identities/:handle/approvals/:id/approve", input, { act }))
    tell(say("approved", { subject }))
    await leave(handle, id)
  })
  return (
    <>
      <div class="bar">
        <Button kind="primary" busy={approve.busy} icon="check" disabled={!complete} onClick={() => void approve.run()}>
          {say("approve")}
        </Button>
        <Button kind="danger" onClick={() => setRefusing(true)}>
          {say("refuse")}
        </Button>
      </div>
      <ProblemNote failure={approve.failure} />
      {refusing ? (
        <Refusing handle={handle} message={message} subject={subject} onClose={() => setRefusing(false)} />
      ) : null}
    </>
  )
}
