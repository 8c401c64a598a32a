/** A key in the place of another: made with the same rights, shown once; the other goes on for a while. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { Dialog } from "../ui/Dialog.tsx"
import { Form, Select } from "../ui/Field.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say as common } from "../ui/texts.ts"
import { Made } from "./NewKey.tsx"
import { say } from "./texts.ts"

interface ReplacingProps {
  readonly of: Answer<"GET /api/keys/:id">
  readonly onClose: () => void
}

const hour = 3600

export const Replacing = ({ of, onClose }: ReplacingProps) => {
  const [overlap, setOverlap] = useState(String(24 * hour))
  const [made, setMade] = useState<string>()
  const replace = useAct(async (act) => {
    const body = { overlap_seconds: Number(overlap) }
    setMade((await call("POST /api/keys/:id/rotate", { params: { id: of.id }, body }, { act })).key)
    void outdated(["/api/keys"])
  })
  if (made !== undefined) return <Made secret={made} onClose={onClose} />
  return (
    <Dialog title={say("rotate_title", { name: of.name })} onClose={onClose}>
      <p>{say("rotate_why")}</p>
      <Form onDone={() => void replace.run()}>
        <Select label={say("overlap")} value={overlap} onValue={setOverlap}>
          <option value="0">{say("overlap_none")}</option>
          <option value={String(hour)}>{say("hours", { count: 1 })}</option>
          <option value={String(24 * hour)}>{say("hours", { count: 24 })}</option>
          <option value={String(7 * 24 * hour)}>{say("days", { count: 7 })}</option>
        </Select>
        <ProblemNote failure={replace.failure} />
        <div class="actions">
          <Button onClick={onClose}>{common("cancel")}</Button>
          <Button kind="primary" type="submit" busy={replace.busy}>
            {say("rotate")}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}
