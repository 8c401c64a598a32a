/** A delivery that expands to its attempts and its request, and can be resent. */
import { useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { Code } from "../ui/Copy.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Status, type Tone } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import type { RowPlace } from "../ui/LongList.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"
import "./webhooks.css"
import { dateTime, duration, readyTimes } from "../texts/Texts.ts"

readyTimes()

export type Delivery = Answer<"GET /api/identities/:handle/webhooks/:id/deliveries">["deliveries"][number]
type Attempt = Delivery["attempts"][number]

export const tones: { readonly [S in Delivery["status"]]: Tone } = {
  delivered: "ok",
  queued: "busy",
  retrying: "warn",
  failed: "bad",
}

type Webhook = Answer<"GET /api/identities/:handle/webhooks/:id">
const stateTones: { readonly [S in Webhook["status"]]: Tone } = { active: "ok", disabled: "off", stopped: "bad" }

export const WebhookStatus = ({ of: { status, failing_since } }: { readonly of: Webhook }) =>
  failing_since === null ? (
    <Status tone={stateTones[status]}>{say(status)}</Status>
  ) : (
    <Status tone="bad">{say("failing")}</Status>
  )

const reasons = {
  timeout: "why_timeout",
  refused_address: "why_refused",
  connection: "why_connect",
  dns: "why_dns",
  tls: "why_tls",
  interrupted: "why_interrupted",
  webhook_disabled: "why_disabled",
  creator_revoked: "why_creator_revoked",
  creator_expired: "why_creator_expired",
  creator_narrowed: "why_creator_narrowed",
} as const

const isReceived = ({ status_code }: Attempt) => status_code !== null && status_code >= 200 && status_code < 300

/** Returns why an attempt failed; undefined if it succeeded. */
export const whyOf = (attempt: Attempt): string | undefined => {
  if (isReceived(attempt)) return undefined
  if (attempt.status_code !== null) return say("why_status", { status: String(attempt.status_code) })
  const { error } = attempt
  return error !== null && error in reasons ? say(reasons[error as keyof typeof reasons]) : (error ?? undefined)
}

const Body = ({ text }: { readonly text: string | null }) =>
  text === null || text === "" ? (
    <span class="muted small">{say("no_body")}</span>
  ) : (
    <pre class="answer" dir="auto" tabIndex={0} aria-label={say("answer")}>
      {text}
    </pre>
  )

export const Attempts = ({ delivery }: { readonly delivery: Delivery }) => (
  <ol class="attempts">
    {delivery.attempts.map((attempt) => (
      <li key={attempt.number} data-tone={isReceived(attempt) ? "ok" : "bad"}>
        <div class="bar">
          <strong>{say("attempt", { number: attempt.number })}</strong>
          <code>{attempt.status_code === null ? attempt.error : `HTTP ${attempt.status_code}`}</code>
          <span class="muted small number">
            {duration(attempt.duration_ms)} · <Time at={attempt.started_at} form="full" />
          </span>
        </div>
        {whyOf(attempt) === undefined ? null : <p>{whyOf(attempt)}</p>}
        {attempt.status_code === null ? null : <Body text={attempt.response_body ?? null} />}
      </li>
    ))}
    {delivery.next_attempt_at === null ? null : (
      <li data-tone="next">
        <div class="bar">
          <Status tone={tones[delivery.status]}>{say("next")}</Status>
          <span class="muted small number" title={dateTime(new Date(delivery.next_attempt_at))}>
            <Time at={delivery.next_attempt_at} />
          </span>
        </div>
      </li>
    )}
  </ol>
)

export interface OfWebhook {
  readonly handle: string
  /** The id of the Webhook. */
  readonly id: string
}

const curlOf = ({
  url,
  headers,
  body,
}: Answer<"GET /api/identities/:handle/webhooks/:id/deliveries/:delivery_id/request">) => {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const given = Object.entries(headers).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)} \\`)
  return [`curl -X POST ${quoted(url)} \\`, ...given, `  -d ${quoted(body)}`].join("\n")
}

const Request = ({ handle, id, delivery }: OfWebhook & { readonly delivery: Delivery }) => {
  const request = useCall("GET /api/identities/:handle/webhooks/:id/deliveries/:delivery_id/request", {
    params: { handle, id, delivery_id: delivery.id },
  })
  return (
    <Loaded of={request}>
      {(request) => (
        <div class="stack">
          <p class="muted small">{say("request_why")}</p>
          <Code text={curlOf(request)} what={say("as_curl")} wrap />
        </div>
      )}
    </Loaded>
  )
}

/** Resends an Event to a Webhook. */
export const Replay = ({
  handle,
  id,
  event,
  words,
}: OfWebhook & { readonly event: string; readonly words: string }) => {
  const command = useCommand(async (key) => {
    await call("POST /api/events/:id/replay", { params: { id: event }, body: { webhook_id: id } }, { key })
    tell(say("sent_again"))
    await outdated(["/api/identities/:handle/webhooks"], handle)
  })
  return (
    <>
      <Button icon="again" small command={command}>
        {words}
      </Button>
      <ProblemNote failure={command.failure} />
    </>
  )
}

interface ItemProps extends OfWebhook {
  readonly delivery: Delivery
  /** Whether it is expanded at first. */
  readonly open?: boolean
  readonly at?: RowPlace
}

export const DeliveryItem = ({ handle, id, delivery, at, open: first = false }: ItemProps) => {
  const [open, setOpen] = useState(first)
  const [request, setRequest] = useState(false)
  const last = delivery.attempts.at(-1)
  const why = last === undefined ? undefined : whyOf(last)
  return (
    <li {...at} class="delivery">
      <button type="button" class="delivery-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} />
        <Status tone={tones[delivery.status]}>{say(delivery.status)}</Status>
        <span class="grow one-line">
          <code>{delivery.event_type}</code>
          {why === undefined ? null : <span class="muted small"> · {why}</span>}
        </span>
        {delivery.replay ? <span class="tag">{say("replay")}</span> : null}
        <span class="muted small number">
          {last?.status_code ?? ""} {say("of_seven", { count: delivery.attempts.length })}
        </span>
        <span class="muted small number when">
          <Time at={delivery.created_at} />
        </span>
      </button>
      {open ? (
        <div class="delivery-body">
          <Attempts delivery={delivery} />
          <div class="bar">
            {delivery.event_type === "webhook.test" ? null : (
              <>
                <Replay handle={handle} id={id} event={delivery.event_id} words={say("again")} />
                <a class="button" data-kind="normal" data-small="" href={`/console/activity/${delivery.event_id}`}>
                  {say("event")}
                </a>
              </>
            )}
            <Button small aria-expanded={request} onClick={() => setRequest(!request)}>
              {say("request_show")}
            </Button>
          </div>
          {request ? <Request handle={handle} id={id} delivery={delivery} /> : null}
        </div>
      ) : null}
    </li>
  )
}
