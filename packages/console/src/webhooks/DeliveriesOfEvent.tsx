/** The deliveries of an Event to each Webhook of its Identity. */
import { identityPath } from "../router/Paths.ts"
import { useCall } from "../client/Queries.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty } from "../ui/Page.tsx"
import { DeliveryItem, type OfWebhook, Replay } from "./DeliveryItem.tsx"
import { say } from "./texts.ts"

interface OfEvent {
  readonly handle: string
  /** The id of the Event. */
  readonly id: string
  readonly type: string
}

const OfOne = ({
  handle,
  id,
  url,
  event,
  type,
}: OfWebhook & { readonly url: string; readonly event: string; readonly type: string }) => {
  const deliveries = useCall(
    "GET /api/identities/:handle/webhooks/:id/deliveries",
    { params: { handle, id }, query: { event_id: event } },
    {
      // Deliveries raise no Events, so they are polled.
      every: (known) => (known?.deliveries.some(({ status }) => status === "queued") === true ? 1000 : 5000),
    },
  )
  return (
    <div class="stack">
      <a class="mono one-line" href={`/console${identityPath(handle)}/webhooks/${id}`}>
        {url}
      </a>
      <Loaded of={deliveries} lines={2}>
        {({ deliveries }) =>
          deliveries.length === 0 ? (
            <div class="box padded bar spread">
              <span class="muted grow">{say("not_sent", { type })}</span>
              <Replay handle={handle} id={id} event={event} words={say("send_anyway")} />
            </div>
          ) : (
            <ul class="box rows">
              {deliveries.map((delivery, index) => (
                <DeliveryItem key={delivery.id} handle={handle} id={id} delivery={delivery} open={index === 0} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </div>
  )
}

export const DeliveriesOfEvent = ({ handle, id, type }: OfEvent) => {
  const webhooks = useCall("GET /api/identities/:handle/webhooks", { params: { handle }, query: { limit: 200 } })
  return (
    <Loaded of={webhooks}>
      {({ webhooks }) =>
        webhooks.length === 0 ? (
          <div class="box">
            <Empty
              icon="webhook"
              title={say("no_webhook", { handle })}
              action={<ButtonLink href={`/console${identityPath(handle)}/webhooks/new`}>{say("add")}</ButtonLink>}
            />
          </div>
        ) : (
          <div class="stack-loose">
            {webhooks.map((webhook) => (
              <OfOne key={webhook.id} handle={handle} id={webhook.id} url={webhook.url} event={id} type={type} />
            ))}
          </div>
        )
      }
    </Loaded>
  )
}
