/** Creates or rotates a key and shows the new key once. */
import { useState } from "preact/hooks"
import { call, type Answer } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { Dialog } from "../ui/Dialog.tsx"
import { Select, TextField } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Note } from "../ui/Page.tsx"
import { Secret } from "../ui/Secret.tsx"
import { defaultRights, requestOf, type Rights, RightsFields } from "./Rights.tsx"
import { say } from "./texts.ts"

interface ReplacingProps {
  readonly of: Answer<"GET /api/keys/:id">
  readonly onClose: () => void
}

const hour = 3600

export const Replacing = ({ of, onClose }: ReplacingProps) => {
  const [made, setMade] = useState<string>()
  const { field, command } = useForm({ overlap: String(24 * hour) }, async (key, { overlap }) => {
    const body = { overlap_seconds: Number(overlap) }
    setMade((await call("POST /api/keys/:id/rotate", { params: { id: of.id }, body }, { key })).key)
    void outdated(["/api/keys"])
  })
  if (made !== undefined) return <Made secret={made} onClose={onClose} />
  return (
    <Dialog title={say("rotate_title", { name: of.name })} onClose={onClose}>
      <p>{say("rotate_why")}</p>
      <CommandForm command={command} doing={say("rotate")} onCancel={onClose}>
        <Select label={say("overlap")} {...field("overlap", "/overlap_seconds")}>
          <option value="0">{say("overlap_none")}</option>
          <option value={String(hour)}>{say("hours", { count: 1 })}</option>
          <option value={String(24 * hour)}>{say("hours", { count: 24 })}</option>
          <option value={String(7 * 24 * hour)}>{say("days", { count: 7 })}</option>
        </Select>
      </CommandForm>
    </Dialog>
  )
}

/** Shows a new key in a dialog that only closes by its button. */
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
  /** Identities that a key can be created for. */
  readonly handles: ReadonlyArray<string>
  readonly onClose: () => void
}

export const NewKey = ({ handles, onClose }: NewKeyProps) => {
  const [made, setMade] = useState<string>()
  const { values, set, field, wrong, command } = useForm<Rights & { readonly name: string; readonly handle: string }>(
    { name: "", handle: "", ...defaultRights },
    async (key, { name, handle, ...rights }) => {
      const asked = requestOf(rights)
      if (asked === undefined) return
      const body = { name, ...asked }
      const answer = await (handle === ""
        ? call("POST /api/keys", { body }, { key })
        : call("POST /api/identities/:handle/keys", { params: { handle }, body }, { key }))
      setMade(answer.key)
      void outdated(["/api/keys"])
    },
    { name: "key", secrets: [] },
  )
  if (made !== undefined) return <Made secret={made} onClose={onClose} />
  return (
    <Dialog title={say("create")} onClose={onClose}>
      <CommandForm command={command} doing={say("create")} onCancel={onClose}>
        <TextField label={say("name")} hint={say("name_hint")} maxLength={100} required autofocus {...field("name")} />
        <Select label={say("acts_for")} {...field("handle")}>
          <option value="">{say("whole_account")}</option>
          {handles.map((one) => (
            <option key={one} value={one}>
              @{one}
            </option>
          ))}
        </Select>
        <RightsFields of={values} set={set} wrong={wrong} />
      </CommandForm>
    </Dialog>
  )
}
