/** A Webhook: settings, test, and delivery log. */
import { useState } from "preact/hooks"
import { LazyUsage } from "../charts/LazyUsage.tsx"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { identityPath } from "../router/Paths.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { go, query, refine } from "../router/Router.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { ConfirmButton, Dialog } from "../ui/Dialog.tsx"
import { Select } from "../ui/Field.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { LongList } from "../ui/LongList.tsx"
import { Empty, Facts, Note, Section, Segments } from "../ui/Page.tsx"
import { ProblemNotes } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { DeliveryItem, type OfWebhook, WebhookStatus } from "./DeliveryItem.tsx"
import { say } from "./texts.ts"
import { type NewWebhook, WebhookForm } from "./WebhookForm.tsx"

type Webhook = Answer<"GET /api/identities/:handle/webhooks/:id">

const hours = { hour: 1, day: 24, week: 168, month: 720 } as const
type Span = keyof typeof hours

/** Retries the deliveries that failed within a period. */
const Recover = ({ handle, id }: OfWebhook) => {
  const [span, setSpan] = useState<Span>("day")
  const recover = useCommand(async (key) => {
    const since = new Date(Date.now() - hours[span] * 3_600_000).toISOString()
    const { queued } = await call(
      "POST /api/identities/:handle/webhooks/:id/recover",
      { params: { handle, id }, body: { since } },
      { key },
    )
    tell(say("recovered", { count: queued }))
    await outdated(["/api/identities/:handle/webhooks"], handle)
  })
  return (
    <ConfirmButton small icon="again" doing={say("recover")} command={recover}>
      <p>{say("recover_why")}</p>
      <Select label={say("since")} value={span} onValue={(value) => setSpan(value as Span)}>
        {(Object.keys(hours) as ReadonlyArray<Span>).map((one) => (
          <option key={one} value={one}>
            {say(one)}
          </option>
        ))}
      </Select>
    </ConfirmButton>
  )
}

const statuses = ["queued", "delivered", "retrying", "failed"] as const

const Deliveries = ({ handle, id, isFirstOpen }: OfWebhook & { readonly isFirstOpen?: boolean }) => {
  const status = statuses.find((one) => one === query.value.get("status"))
  const deliveries = useList("GET /api/identities/:handle/webhooks/:id/deliveries", {
    params: { handle, id },
    query: { limit: 50, ...(status && { status }) },
  })
  return (
    <Section title={say("deliveries")} actions={<Recover handle={handle} id={id} />}>
      <div class="bar">
        <Segments<(typeof statuses)[number] | "all">
          label={say("status")}
          value={status ?? "all"}
          options={[["all", say("all")], ...statuses.map((one) => [one, say(one)] as const)]}
          onValue={(value) => refine({ status: value === "all" ? undefined : value })}
        />
      </div>
      <Loaded of={deliveries}>
        {({ pages }) => {
          return pages.every(({ deliveries }) => deliveries.length === 0) ? (
            <div class="box">
              <Empty icon="webhook" title={say(status === undefined ? "no_deliveries" : "none_of_these")}>
                {say("no_deliveries_why")}
              </Empty>
            </div>
          ) : (
            <>
              <LongList of={deliveries} rows={({ deliveries }) => deliveries} class="box rows">
                {(delivery, at) => (
                  <DeliveryItem
                    key={delivery.id}
                    handle={handle}
                    id={id}
                    delivery={delivery}
                    at={at}
                    open={isFirstOpen === true && at["aria-posinset"] === 1}
                  />
                )}
              </LongList>
              <More of={deliveries} />
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}

const Shown = ({ handle, webhook }: { readonly handle: string; readonly webhook: Webhook }) => {
  const { id } = webhook
  const params = { handle, id }
  const [isEditing, setEditing] = useState(false)
  const renew = () => outdated(["/api/identities/:handle/webhooks"], handle)
  const test = useCommand(async (key) => {
    await call("POST /api/identities/:handle/webhooks/:id/test", { params }, { key })
    tell(say("tested"))
    await renew()
  })
  const turn = useCommand(async () => {
    const status = webhook.status === "active" ? "disabled" : "active"
    await call("PATCH /api/identities/:handle/webhooks/:id", { params, body: { status } })
    await renew()
  })
  const edit = async (_: string, body: NewWebhook) => {
    await call("PATCH /api/identities/:handle/webhooks/:id", { params, body })
    setEditing(false)
    await renew()
  }
  const remove = useCommand(async () => {
    await call("DELETE /api/identities/:handle/webhooks/:id", { params })
    go(`${identityPath(handle)}/webhooks`, "replace")
    await renew()
  })
  const isActive = webhook.status === "active"
  return (
    <div class="stack-loose">
      <div class="box padded stack">
        <Facts
          facts={[
            [say("url"), <code>{webhook.url}</code>],
            [say("status"), <WebhookStatus of={webhook} />],
            [say("types"), webhook.event_types.includes("*") ? say("every_type") : webhook.event_types.join(", ")],
            webhook.description !== null && [say("description"), <bdi>{webhook.description}</bdi>],
            [say("created"), <Time at={webhook.created_at} />],
          ]}
        />
        {webhook.stopped_reason === null ? null : <Note tone="warn">{say(webhook.stopped_reason)}</Note>}
        {webhook.failing_since === null ? null : (
          <Note tone="bad">
            <p>
              {say("failing_since")} <Time at={webhook.failing_since} form="full" />. {say("failing_why")}
            </p>
          </Note>
        )}
        <div class="bar">
          <Button kind="primary" icon="send" command={test} disabled={!isActive}>
            {say("test")}
          </Button>
          <Button onClick={() => setEditing(true)}>{say("edit")}</Button>
          <Button command={turn}>{say(isActive ? "pause" : "resume")}</Button>
          <ConfirmButton kind="danger" title={say("remove_title")} doing={say("remove")} command={remove}>
            <p>{say("remove_why")}</p>
          </ConfirmButton>
        </div>
        <ProblemNotes of={[test, turn]} />
      </div>
      {/* The reason comes first: the latest delivery with the response of the endpoint. */}
      {webhook.failing_since === null ? null : <Deliveries handle={handle} id={id} isFirstOpen />}
      <LazyUsage of="deliveries" handle={handle} webhook={id} />
      {webhook.failing_since === null ? <Deliveries handle={handle} id={id} /> : null}
      {isEditing ? (
        <Dialog title={say("edit")} wide onClose={() => setEditing(false)}>
          <WebhookForm handle={handle} from={webhook} doing={say("save")} submit={edit} />
        </Dialog>
      ) : null}
    </div>
  )
}

const WebhookPage = ({ handle, id }: OfWebhook) => {
  const webhook = useCall("GET /api/identities/:handle/webhooks/:id", { params: { handle, id } })
  return (
    <IdentityFrame
      handle={handle}
      part="webhooks"
      actions={
        <ButtonLink icon="left" href={`/console${identityPath(handle)}/webhooks`}>
          {say("back")}
        </ButtonLink>
      }
    >
      {() => (
        <Loaded of={webhook} gone={<Empty icon="webhook" title={say("gone")} />}>
          {(webhook) => <Shown handle={handle} webhook={webhook} />}
        </Loaded>
      )}
    </IdentityFrame>
  )
}

export default WebhookPage
