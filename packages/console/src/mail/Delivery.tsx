/** The delivery of an outgoing message: its approval, and the status for each recipient. */
import { mailPath } from "../router/Paths.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Facts, Note, Status, type Tone } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import type { Message } from "./Body.tsx"
import { say } from "./texts.ts"

type Recipient = NonNullable<Message["delivery"]>[number]

const tones: { readonly [S in Recipient["status"]]: Tone } = {
  queued: "busy",
  sent: "ok",
  deferred: "warn",
  bounced: "bad",
}

/** The reply of the recipient's server. */
const Said = ({ reply }: { readonly reply: NonNullable<Recipient["reply"]> }) => (
  <span class="small muted reply">
    {reply.host === null ? null : <bdi class="mono">{reply.host} </bdi>}
    <bdi>
      {[reply.code, reply.status, reply.text]
        .filter((part) => part !== null && part !== "")
        .join(" ")
        .slice(0, 400)}
    </bdi>
  </span>
)

const One = ({ of }: { readonly of: Recipient }) => (
  <li>
    <span class="bar spread">
      <bdi class="mono one-line">{of.address}</bdi>
      <span class="bar">
        <Status tone={tones[of.status]}>{say(`delivery_${of.status}`)}</Status>
        <span class="muted small">
          <Time at={of.updated_at} />
        </span>
      </span>
    </span>
    {of.reason === null ? null : (
      <span class="small">
        {say("held")} <bdi>{of.reason}</bdi>
      </span>
    )}
    {of.reply === null ? null : <Said reply={of.reply} />}
    {of.next_attempt_at === null ? null : (
      <span class="small muted">
        {say("next_attempt")} <Time at={of.next_attempt_at} />
      </span>
    )}
  </li>
)

/** Links to the review of a message that awaits approval, or shows the decision. */
const Approval = ({ handle, message }: { readonly handle: string; readonly message: Message }) => {
  const { approval, status } = message
  if (approval === undefined || approval === null) return null
  if (status === "awaiting_approval") {
    return (
      <Note tone="warn">
        <strong>{say("awaiting")}</strong>
        <Facts
          facts={[
            [say("asked"), <Time at={approval.requested_at} />],
            [say("lapses"), <Time at={approval.expires_at} />],
          ]}
        />
        <div class="bar">
          <ButtonLink kind="primary" href={`/console${mailPath(handle)}/approvals/${message.id}`}>
            {say("review")}
          </ButtonLink>
          <a href={`/console${mailPath(handle)}/approvals`}>{say("all_waiting")}</a>
        </div>
      </Note>
    )
  }
  return (
    <Note {...(status === "refused" ? { tone: "bad" as const } : {})}>
      <span class="bar">
        <span>{say(status === "refused" ? "was_refused" : "was_approved")}</span>
        {approval.decided_at === null ? null : (
          <span class="muted small">
            <Time at={approval.decided_at} />
          </span>
        )}
      </span>
      {approval.reason === null ? null : <bdi>{approval.reason}</bdi>}
    </Note>
  )
}

interface DeliveryProps {
  readonly handle: string
  readonly message: Message
  readonly isStopped: boolean
}

export const DeliveryState = ({ handle, message, isStopped }: DeliveryProps) => {
  const delivery = message.delivery ?? []
  const isOnItsWay = delivery.some(({ status }) => status === "queued" || status === "deferred")
  return (
    <>
      <Approval handle={handle} message={message} />
      {isStopped && isOnItsWay ? (
        <Note tone="bad">
          <div class="bar spread">
            <span>{say("held_by_stop")}</span>
            <ButtonLink small href={`/console${mailPath(handle)}/settings`}>
              {say("settings")}
            </ButtonLink>
          </div>
        </Note>
      ) : null}
      {delivery.length === 0 || message.status === "awaiting_approval" ? null : (
        <section class="stack" aria-label={say("delivery")}>
          <h4>{say("delivery")}</h4>
          <ul class="box rows deliveries">
            {delivery.map((one) => (
              <One key={one.address} of={one} />
            ))}
          </ul>
          {delivery.some(({ status }) => status === "bounced") ? (
            <p class="muted small">
              {say("bounced_why")} <a href={`/console${mailPath(handle)}/settings`}>{say("recipients")}</a>
            </p>
          ) : null}
        </section>
      )}
    </>
  )
}
