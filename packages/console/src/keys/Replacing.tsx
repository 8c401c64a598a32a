/** Rotates a key: shows a new key with the same permissions once, and lets the old one expire later. */
import { useState } from "preact/hooks"
import { type Answer, call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { Dialog } from "../ui/Dialog.tsx"
import { Select } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Made } from "./NewKey.tsx"
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
