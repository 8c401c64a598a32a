/** Read state, flag and labels of a message, shared with the agent and mail programs. */
import { mailPath } from "../router/Paths.ts"
import { useState } from "preact/hooks"
import { type Command, useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { changing } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { TextField } from "../ui/Field.tsx"
import { Form, wrongAt } from "../ui/Form.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Menu } from "../ui/Menu.tsx"
import { say } from "./texts.ts"

type Message = Answer<"GET /api/identities/:handle/messages/:id">
type Change = Partial<Pick<Message, "seen" | "flagged" | "labels">>
export type Marking = Command<[change: Change]>

const paths = ["/api/identities/:handle/messages", "/api/identities/:handle/threads"]

/** Changes a mark. Each mark has its own command, so that they do not wait for each other. */
export const useMarking = (handle: string, id: string): Marking =>
  useCommand((_, change: Change) => {
    const input = { params: { handle, id } }
    return changing(
      "GET /api/identities/:handle/messages/:id",
      input,
      (before) => ({ ...before, ...change }),
      () => call("PATCH /api/identities/:handle/messages/:id", { ...input, body: change }),
      paths,
    )
  })

interface LabelsProps {
  readonly handle: string
  readonly labels: ReadonlyArray<string>
  readonly mark: Marking
}

/** Labels link to the messages that have them; the menu adds one. */
export const Labels = ({ handle, labels, mark }: LabelsProps) => {
  const [typed, setTyped] = useState("")
  const add = async () => {
    const label = typed.trim().toLowerCase()
    if (label === "" || labels.includes(label)) return setTyped("")
    if (await mark.run({ labels: [...labels, label] })) setTyped("")
  }
  return (
    <span class="bar">
      {labels.map((label) => (
        <span class="tag chip" key={label}>
          <a class="one-line" href={`/console${mailPath(handle)}?label=${encodeURIComponent(label)}`}>
            <bdi>{label}</bdi>
          </a>
          <button
            type="button"
            aria-label={say("label_off", { label })}
            onClick={() => void mark.run({ labels: labels.filter((one) => one !== label) })}
          >
            <Icon name="cross" />
          </button>
        </span>
      ))}
      <Menu label={say("label_add")} icon="tag" text={say("label")}>
        <div data-stay style={{ padding: "8px" }}>
          <Form onDone={() => void add()}>
            <TextField
              label={say("label_add")}
              value={typed}
              onValue={setTyped}
              maxLength={100}
              autocapitalize="off"
              wrong={wrongAt(mark.failure, "/labels")}
            />
            <Button type="submit" small busy={mark.busy}>
              {say("add")}
            </Button>
          </Form>
        </div>
      </Menu>
    </span>
  )
}
