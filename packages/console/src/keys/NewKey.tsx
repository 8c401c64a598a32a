/** A new key: named, bounded, and then shown once. The dialog does not close by itself. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { Dialog } from "../ui/Dialog.tsx"
import { Form, Select, TextField, wrongAt } from "../ui/Field.tsx"
import { Note } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Secret } from "../ui/Secret.tsx"
import { say as common } from "../ui/texts.ts"
import { RightsFields, useRights } from "./Rights.tsx"
import { say } from "./texts.ts"

/** What was made, for the only time. */
export const Made = ({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) => (
  <Dialog title={say("made")} onClose={onClose} firm>
    <Note tone="warn">{say("made_once")}</Note>
    <Secret value={secret} what={say("key")} />
    <div class="actions">
      <Button kind="primary" onClick={onClose}>
        {say("stored")}
      </Button>
    </div>
  </Dialog>
)

interface NewKeyProps {
  /** Handles of Identities that a key can be for. */
  readonly handles: ReadonlyArray<string>
  readonly onClose: () => void
}

export const NewKey = ({ handles, onClose }: NewKeyProps) => {
  const [name, setName] = useState("")
  const [handle, setHandle] = useState("")
  const rights = useRights()
  const [made, setMade] = useState<string>()
  const create = useAct(async (act) => {
    if (rights.asked === undefined) return
    const body = { name, ...rights.asked }
    const answer = await (handle === ""
      ? call("POST /api/keys", { body }, { act })
      : call("POST /api/identities/:handle/keys", { params: { handle }, body }, { act }))
    setMade(answer.key)
    void outdated(["/api/keys"])
  })
  if (made !== undefined) return <Made secret={made} onClose={onClose} />
  return (
    <Dialog title={say("create")} onClose={onClose}>
      <Form onDone={() => void create.run()}>
        <TextField
          label={say("name")}
          hint={say("name_hint")}
          value={name}
          onValue={setName}
          maxLength={100}
          required
          autofocus
          wrong={wrongAt(create.failure, "/name")}
        />
        <Select label={say("acts_for")} value={handle} onValue={setHandle}>
          <option value="">{say("whole_account")}</option>
          {handles.map((one) => (
            <option key={one} value={one}>
              @{one}
            </option>
          ))}
        </Select>
        <RightsFields of={rights} wrong={(pointer) => wrongAt(create.failure, pointer)} />
        <ProblemNote failure={create.failure} />
        <div class="actions">
          <Button onClick={onClose}>{common("cancel")}</Button>
          <Button kind="primary" type="submit" busy={create.busy}>
            {say("create")}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}
