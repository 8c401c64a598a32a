/** The URL and the Event types of a Webhook. */
import type { OrgEventType } from "@svc/domain/events/Event"
import type { Input } from "../client/Client.ts"
import { useIdentity } from "../frame/IdentityFrame.tsx"
import { eventTypes, wordsOf } from "../texts/events.ts"
import { Button } from "../ui/Button.tsx"
import { Check, TextField } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { say } from "./texts.ts"
import "./webhooks.css"

export type NewWebhook = Input<"POST /api/identities/:handle/webhooks">["body"]
type Subscription = NewWebhook["event_types"]

/** Event types of the account, which are not sent to Webhooks. The compiler checks that every one is listed. */
const orgTypes: { readonly [T in OrgEventType]: true } = {
  "identity.deleted": true,
  "tunnel.transfer_blocked": true,
  "api_key.created": true,
  "api_key.revoked": true,
  "api_key.rotated": true,
  "api_key.expiring": true,
  "api_key.expired": true,
  "grant.created": true,
  "grant.changed": true,
  "grant.revoked": true,
  "limit.near": true,
  "audit.gap": true,
  "audit.head": true,
  "account.deletion_started": true,
}
const types = eventTypes.filter((type) => !(type in orgTypes))

interface FormProps {
  readonly handle: string
  readonly from?: {
    readonly id: string
    readonly url: string
    readonly event_types: ReadonlyArray<string>
    readonly description: string | null
  }
  readonly doing: string
  readonly submit: (key: string, body: NewWebhook) => Promise<unknown>
}

export const WebhookForm = ({ handle, from, doing, submit }: FormProps) => {
  const { values, set, field, check, command } = useForm(
    {
      url: from?.url ?? "",
      all: from === undefined || from.event_types.includes("*"),
      chosen: from?.event_types.filter((type) => type !== "*") ?? [],
      description: from?.description ?? "",
    },
    (key, { url, all, chosen, description }) =>
      submit(key, {
        url: url.trim(),
        event_types: (all ? ["*"] : chosen) as unknown as Subscription,
        description: description.trim() === "" ? null : description.trim(),
      }),
    { name: `webhook:${handle}:${from?.id ?? ""}`, secrets: [] },
  )
  const { url, all, chosen } = values
  const tunnel = useIdentity(handle).data?.tunnel.url
  return (
    <CommandForm command={command} doing={doing} disabled={!all && chosen.length === 0}>
      <TextField
        label={say("url")}
        hint={
          <>
            {say("url_hint")}{" "}
            {tunnel === undefined || url !== "" ? null : (
              <Button kind="plain" small icon="tunnel" onClick={() => set({ url: `${tunnel}/webhook` })}>
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
        {...field("url")}
      />
      <fieldset class="types">
        <legend>{say("types")}</legend>
        <Check {...check("all")}>{say("every_type")}</Check>
        {all
          ? null
          : types.map((type) => (
              <Check
                key={type}
                checked={chosen.includes(type)}
                onValue={(isOn) => set({ chosen: isOn ? [...chosen, type] : chosen.filter((one) => one !== type) })}
              >
                <code title={wordsOf(type)}>{type}</code>
              </Check>
            ))}
      </fieldset>
      <TextField label={say("description")} optional maxLength={500} {...field("description")} />
    </CommandForm>
  )
}
