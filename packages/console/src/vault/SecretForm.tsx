/** Creates a secret, or changes its value. */
import { secretTag } from "@svc/domain/vault/SecretTag"
import { call, Refused } from "../client/Client.ts"
import { FormDialog } from "../ui/Dialog.tsx"
import { TextArea, TextField } from "../ui/Field.tsx"
import { useForm } from "../ui/Form.tsx"
import { Note } from "../ui/Page.tsx"
import { say as common } from "../ui/texts.ts"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"
import { inputOf } from "./SecretView.tsx"

interface Present {
  readonly name: string
  readonly description: string | null
  readonly version: number
  readonly created_at: string
}

interface SecretFormProps {
  readonly identity: string | undefined
  /** The secret to change; undefined to create one. */
  readonly present?: Present
  readonly onClose: () => void
  readonly onDone: () => void
}

export const SecretForm = ({ identity, present, onClose, onDone }: SecretFormProps) => {
  const { values, field, command } = useForm(
    { name: present?.name ?? "", value: "", description: present?.description ?? "" },
    async (key, { name, value, description }) => {
      const body = { value, description: description.trim() === "" ? null : description }
      // Fails if somebody else has created or changed the secret in the meantime.
      await call(
        "PUT /api/vault/secrets/:name",
        { ...inputOf({ name, identity }), body },
        present === undefined
          ? { key, ifNoneMatch: "*" }
          : { key, ifMatch: secretTag(present.version, new Date(present.created_at)) },
      )
      tell(say("kept", { name }))
      onDone()
    },
    { name: `secret:${identity ?? ""}:${present?.name ?? ""}`, secrets: ["value"] },
  )
  const isStale = command.failure instanceof Refused && command.failure.problem.code === "precondition_failed"
  return (
    <FormDialog
      title={present === undefined ? say("add") : say("replace_title", { name: values.name })}
      command={command}
      doing={common("save")}
      onClose={onClose}
      {...(isStale && {
        problem: <Note tone="bad">{present === undefined ? say("exists") : say("changed_meanwhile")}</Note>,
      })}
    >
      {present === undefined ? (
        <TextField
          label={say("name")}
          hint={say("name_hint")}
          maxLength={128}
          autocapitalize="off"
          spellcheck={false}
          required
          autofocus
          {...field("name")}
        />
      ) : null}
      <TextArea label={say("value")} spellcheck={false} required {...field("value")} />
      <TextField
        label={say("description")}
        hint={say("description_hint")}
        maxLength={500}
        optional
        {...field("description")}
      />
    </FormDialog>
  )
}
