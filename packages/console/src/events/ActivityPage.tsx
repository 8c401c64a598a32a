/** The live list of Events, with filters by type and Identity. */
import { useList } from "../client/Lists.ts"
import { query } from "../router/Router.ts"
import { useIdentities } from "../shell/Identities.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Filter } from "../ui/Filter.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { LongList } from "../ui/LongList.tsx"
import { Empty, Page } from "../ui/Page.tsx"
import { eventRow } from "./EventList.tsx"
import { eventTypes } from "../texts/events.ts"
import { say } from "./texts.ts"

const ActivityPage = () => {
  const type = eventTypes.find((one) => one === query.value.get("type"))
  const handle = query.value.get("handle") ?? undefined
  const identities = useIdentities().data?.identities ?? []
  const events = useList("GET /api/events", {
    query: { ...(type && { type }), ...(handle === undefined ? {} : { handle }) },
  })
  return (
    <Page
      title={say("title")}
      lead={say("lead")}
      actions={
        <ButtonLink icon="activity" href="/console/activity/audit">
          {say("audit")}
        </ButtonLink>
      }
    >
      <div class="filters">
        <Filter name="type" label={say("type")} any={say("any_type")} values={eventTypes} />
        <Filter
          name="handle"
          label={say("identity")}
          any={say("any_identity")}
          values={identities.map((one) => one.handle)}
        />
      </div>
      <Loaded of={events} lines={8}>
        {({ pages }) => {
          return pages.every(({ events }) => events.length === 0) ? (
            <div class="box">
              <Empty icon="activity" title={say(type === undefined && handle === undefined ? "none" : "none_match")}>
                {say("none_why")}
              </Empty>
            </div>
          ) : (
            <div class="stack">
              <LongList of={events} rows={({ events }) => events} class="box rows events" links>
                {eventRow}
              </LongList>
              <More of={events} />
            </div>
          )
        }}
      </Loaded>
    </Page>
  )
}

export default ActivityPage
