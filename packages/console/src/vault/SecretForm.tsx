/** A new secret, or a new value of one. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { call, Refused } from "../client/Client.ts"
import { Button } from "../ui/Button.tsx"
import { Dialog } from "../ui/Dialog.tsx"
import { Form, TextArea, TextField, wrongAt } from "../ui/Field.tsx"
import { Note } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say as common } from "../ui/texts.ts"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"
import { inputOf } from "./Values.tsx"

interface Present {
  readonly name: string
  readonly description: string | null
  readonly version: number
}

interface SecretFormProps {
  readonly identity: string | undefined
  /** The secret that gets a new value; none where it is new. */
  readonly present?: Present
  readonly onClose: () => void
  readonly onDone: () => void
}

export const SecretForm = ({ identity, present, onClose, onDone }: SecretFormProps) => {
  const [name, setName] = useState(present?.name ?? "")
  const [value, setValue] = useState("")
  const [description, setDescription] = useState(present?.description ?? "")
  const keep = useAct(async (act) => {
    const body = { value, description: description.trim() === "" ? null : description }
    // What somebody else made or changed meanwhile is not overwritten unseen.
    await call(
      "PUT /api/vault/secrets/:name",
      { ...inputOf({ name, identity }), body },
      present === undefined ? { act, ifNoneMatch: "*" } : { act, ifMatch: `"v${present.version}"` },
    )
    tell(say("kept", { name }))
    onDone()
    onClose()
  })
  const isStale = keep.failure instanceof Refused && keep.failure.problem.code === "precondition_failed"
  return (
    <Dialog title={present === undefined ? say("add") : say("replace_title", { name })} onClose={onClose}>
      <Form onDone={() => void keep.run()}>
        {present === undefined ? (
          <TextField
            label={say("name")}
            hint={say("name_hint")}
            value={name}
            onValue={setName}
            maxLength={128}
            autocapitalize="off"
            spellcheck={false}
            required
            autofocus
            wrong={wrongAt(keep.failure, "/name")}
          />
        ) : null}
        <TextArea
          label={say("value")}
          value={value}
          onValue={setValue}
          spellcheck={false}
          required
          wrong={wrongAt(keep.failure, "/value")}
        />
        <TextField
          label={say("description")}
          hint={say("description_hint")}
          value={description}
          onValue={setDescription}
          maxLength={500}
          optional
          wrong={wrongAt(keep.failure, "/description")}
        />
        {isStale ? (
          <Note tone="bad">{present === undefined ? say("exists") : say("changed_meanwhile")}</Note>
        ) : (
          <ProblemNote failure={keep.failure} />
        )}
        <div class="actions">
          <Button onClick={onClose}>{common("cancel")}</Button>
          <Button kind="primary" type="submit" busy={keep.busy}>
            {common("save")}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}
