/** Where Events go, and which. */
import type { EventType } from "@svc/domain/events/Event"
import { useState } from "preact/hooks"
import type { Act } from "../client/Acts.ts"
import type { Input } from "../client/Client.ts"
import { useIdentity } from "../frame/IdentityFrame.tsx"
import { eventTypes, wordsOf } from "../texts/events.ts"
import { Button } from "../ui/Button.tsx"
import { Check, Form, TextField, wrongAt } from "../ui/Field.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say } from "./texts.ts"
import "./webhooks.css"

export type NewWebhook = Input<"POST /api/identities/:handle/webhooks">["body"]
type Subscription = NewWebhook["event_types"]

/** Types that concern the account reach no Webhook. */
const orgTypes: ReadonlySet<EventType> = new Set<EventType>([
  "identity.deleted",
  "tunnel.transfer_blocked",
  "api_key.created",
  "api_key.revoked",
  "limit.near",
  "audit.gap",
  "audit.head",
  "account.deletion_started",
])
const types = eventTypes.filter((type) => !orgTypes.has(type))

interface FormProps {
  readonly handle: string
  readonly from?: {
    readonly url: string
    readonly event_types: ReadonlyArray<string>
    readonly description: string | null
  }
  readonly doing: string
  readonly act: Act<[NewWebhook]>
}

export const WebhookForm = ({ handle, from, doing, act }: FormProps) => {
  const [url, setUrl] = useState(from?.url ?? "")
  const [all, setAll] = useState(from === undefined || from.event_types.includes("*"))
  const [chosen, setChosen] = useState<ReadonlyArray<string>>(from?.event_types.filter((type) => type !== "*") ?? [])
  const [description, setDescription] = useState(from?.description ?? "")
  const tunnel = useIdentity(handle).data?.tunnel.url
  const submit = () =>
    act.run({
      url: url.trim(),
      event_types: (all ? ["*"] : chosen) as unknown as Subscription,
      description: description.trim() === "" ? null : description.trim(),
    })
  return (
    <Form onDone={() => void submit()}>
      <TextField
        label={say("url")}
        hint={
          <>
            {say("url_hint")}{" "}
            {tunnel === undefined || url !== "" ? null : (
              <Button kind="plain" small icon="tunnel" onClick={() => setUrl(`${tunnel}/webhook`)}>
                {say("url_tunnel")}
              </Button>
            )}
          </>
        }
        type="url"
        required
        autofocus
        placeholder="https://example.org/hook"
        spellcheck={false}
        value={url}
        onValue={(value) => {
          setUrl(value)
          act.forget()
        }}
        wrong={wrongAt(act.failure, "/url")}
      />
      <fieldset class="types">
        <legend>{say("types")}</legend>
        <Check checked={all} onValue={setAll}>
          {say("every_type")}
        </Check>
        {all
          ? null
          : types.map((type) => (
              <Check
                key={type}
                checked={chosen.includes(type)}
                onValue={(on) => setChosen(on ? [...chosen, type] : chosen.filter((one) => one !== type))}
              >
                <code title={wordsOf(type)}>{type}</code>
              </Check>
            ))}
      </fieldset>
      <TextField label={say("description")} optional maxLength={500} value={description} onValue={setDescription} />
      <ProblemNote failure={act.failure} />
      <div class="actions">
        <Button type="submit" kind="primary" busy={act.busy} disabled={!all && chosen.length === 0}>
          {doing}
        </Button>
      </div>
    </Form>
  )
}
