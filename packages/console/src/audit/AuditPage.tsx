/** The audit log of the account, with filters by category, outcome and Identity. */
import { auditSentence } from "@svc/domain/audit/AuditSentences"
import type { Answer } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { query } from "../router/Router.ts"
import { useIdentities } from "../shell/Identities.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Code } from "../ui/Copy.tsx"
import { Filter } from "../ui/Filter.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { LongList, type RowPlace } from "../ui/LongList.tsx"
import { Empty, Page } from "../ui/Page.tsx"
import { Sentence } from "../ui/Sentence.tsx"
import { Time } from "../ui/Time.tsx"
import { say } from "./texts.ts"
import "../events/events.css"

type Audited = Answer<"GET /api/audit/:id">

const classes = ["secret", "change", "auth"] as const
const outcomes = ["allowed", "refused", "failed", "repeated"] as const
const tones = { allowed: "ok", refused: "warn", failed: "bad", repeated: "off" } as const

/** Returns the interface or tool and the IP address. */
const sourceOf = ({ source }: Audited): string =>
  [source.tool ?? say(`via_${source.via}`), source.address].filter((part) => part !== null).join(" · ")

const recordRow = (record: Audited, at: RowPlace) => (
  <li key={record.id} class="record" {...at}>
    <span class="status" data-tone={tones[record.outcome]} aria-hidden="true" />
    <details>
      <summary class="what">
        <Sentence of={(language, mark) => auditSentence(language, record, mark)}>
          {record.code === null ? "" : ` (${record.code})`}
        </Sentence>
        <bdi class="about one-line">{sourceOf(record)}</bdi>
      </summary>
      <Code text={JSON.stringify(record, undefined, 2)} what={say("record")} wrap />
    </details>
    <code class="type">{say(`class_${record.class}`)}</code>
    <span class="muted small number">
      <Time at={record.at} />
    </span>
  </li>
)

const AuditPage = () => {
  const kind = classes.find((one) => one === query.value.get("class"))
  const outcome = outcomes.find((one) => one === query.value.get("outcome"))
  const identity = query.value.get("identity") ?? undefined
  const identities = useIdentities().data?.identities ?? []
  const records = useList("GET /api/audit", {
    query: {
      ...(kind && { class: kind }),
      ...(outcome && { outcome }),
      ...(identity === undefined ? {} : { identity }),
    },
  })
  return (
    <Page
      title={say("title")}
      lead={say("lead")}
      actions={
        <ButtonLink icon="left" href="/console/activity">
          {say("activity")}
        </ButtonLink>
      }
    >
      <div class="filters">
        <Filter
          name="class"
          label={say("class")}
          any={say("any_class")}
          values={classes}
          say={(one) => say(`class_${one}`)}
        />
        <Filter name="outcome" label={say("outcome")} any={say("any_outcome")} values={outcomes} say={say} />
        <Filter
          name="identity"
          label={say("identity")}
          any={say("any_identity")}
          values={identities.map(({ handle }) => handle)}
        />
      </div>
      <Loaded of={records} lines={8}>
        {({ pages }) => {
          return pages.every(({ records }) => records.length === 0) ? (
            <div class="box">
              <Empty icon="activity" title={say("none")}>
                {say("none_why")}
              </Empty>
            </div>
          ) : (
            <div class="stack">
              <LongList of={records} rows={({ records }) => records} class="box rows events" links>
                {recordRow}
              </LongList>
              <More of={records} />
            </div>
          )
        }}
      </Loaded>
    </Page>
  )
}

export default AuditPage
