/** Approves or rejects a message. Both requests carry the hash of the content that the page shows. */
import { useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { mailPath } from "../router/Paths.ts"
import { go } from "../router/Router.ts"
import { Button } from "../ui/Button.tsx"
import { FormDialog } from "../ui/Dialog.tsx"
import { TextField } from "../ui/Field.tsx"
import { useForm } from "../ui/Form.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { tell } from "../ui/Toast.tsx"
import type { Pending } from "./Completeness.ts"
import { say } from "./reviewing.ts"

interface DecideProps {
  readonly handle: string
  readonly message: Pending
  /** Whether the page shows the whole message. */
  readonly complete: boolean
}

/** Opens the message, which shows its delivery status. */
const leave = async (handle: string, id: string) => {
  go(`${mailPath(handle)}/${id}`, "replace")
  await outdated(
    ["approvals", "messages", "threads"].map((part) => `/api/identities/:handle/${part}`),
    handle,
  )
}

/** Reloads the message if the decision fails, because its content may have changed. */
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
  const { field, command } = useForm({ reason: "" }, async (key, { reason }) => {
    const body = { content_sha256, ...(reason.trim() === "" ? {} : { reason }) }
    await rereading(handle, () =>
      call("POST /api/identities/:handle/approvals/:id/refuse", { params: { handle, id }, body }, { key }),
    )
    tell(say("refused", { subject }))
    await leave(handle, id)
  })
  return (
    <FormDialog
      title={say("refuse_title", { subject })}
      doing={say("refuse")}
      kind="fatal"
      command={command}
      onClose={onClose}
    >
      <p>{say("refuse_why")}</p>
      <TextField label={say("reason")} maxLength={500} optional autofocus {...field("reason")} />
    </FormDialog>
  )
}

export const Decide = ({ handle, message, complete }: DecideProps) => {
  const { id, content_sha256 } = message
  const subject = message.subject === "" ? say("no_subject") : message.subject
  const [refusing, setRefusing] = useState(false)
  const approve = useCommand(async (key) => {
    const input = { params: { handle, id }, body: { content_sha256 } }
    await rereading(handle, () => call("POST /api/identities/:handle/approvals/:id/approve", input, { key }))
    tell(say("approved", { subject }))
    await leave(handle, id)
  })
  return (
    <>
      <div class="bar">
        <Button kind="primary" command={approve} icon="check" disabled={!complete}>
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
