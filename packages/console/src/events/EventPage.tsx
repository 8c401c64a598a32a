/** An Event with its Webhook deliveries. */
import { identityPath, mailPath } from "../router/Paths.ts"
import { eventSentence } from "@svc/domain/events/EventSentences"
import { useCall } from "../client/Queries.ts"
import { language, readyTimes } from "../texts/Texts.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Code, Copyable } from "../ui/Copy.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Facts, Page, Section } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { DeliveriesOfEvent } from "../webhooks/DeliveriesOfEvent.tsx"
import { say } from "./texts.ts"

readyTimes()

/** A link to the message that the Event is about. */
const MessageOf = ({ handle, data }: { readonly handle: string; readonly data: object }) => {
  const id = "message_id" in data ? data.message_id : undefined
  return typeof id !== "string" || !id.startsWith("msg_") ? null : (
    <div class="bar">
      <ButtonLink icon="mail" href={`/console${mailPath(handle)}/${encodeURIComponent(id)}`}>
        {say("open_message")}
      </ButtonLink>
    </div>
  )
}

const EventPage = ({ id }: { readonly id: string }) => {
  const event = useCall("GET /api/events/:id", { params: { id } })
  return (
    <Page
      title={event.data === undefined ? say("event") : eventSentence(language.value, event.data)}
      actions={
        <ButtonLink icon="left" href="/console/activity">
          {say("back")}
        </ButtonLink>
      }
    >
      <Loaded of={event}>
        {({ id, type, created_at, handle, data }) => (
          <div class="stack-loose">
            <div class="box padded">
              <Facts
                facts={[
                  [say("type"), <code>{type}</code>],
                  handle === null
                    ? null
                    : [
                        say("identity"),
                        <a href={`/console${identityPath(handle)}`}>
                          <bdi>{handle}</bdi>
                        </a>,
                      ],
                  [say("when"), <Time at={created_at} form="full" />],
                  [say("id"), <Copyable value={id} what={id} />],
                ]}
              />
            </div>
            {handle === null ? null : <MessageOf handle={handle} data={data} />}
            <Section title={say("deliveries")} lead={say("deliveries_why")}>
              {handle === null ? (
                <div class="box">
                  <Empty icon="webhook" title={say("org_level")} />
                </div>
              ) : (
                <DeliveriesOfEvent handle={handle} id={id} type={type} />
              )}
            </Section>
            <Section title={say("data")}>
              <Code text={JSON.stringify(data, undefined, 2)} what={say("data")} wrap />
            </Section>
          </div>
        )}
      </Loaded>
    </Page>
  )
}

export default EventPage
