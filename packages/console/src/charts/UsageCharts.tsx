/** The charts of mail, deliveries, Tunnel requests and limits. Loaded when a page with charts is idle. */
import { useState } from "preact/hooks"
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { refine } from "../router/Router.ts"
import { useIdentities } from "../shell/Identities.ts"
import { binaryBytes, duration, number } from "../texts/Texts.ts"
import { Select } from "../ui/Field.tsx"
import { Section, Segments } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Chart, roundedUpBytes, type Series } from "./Chart.tsx"
import { say } from "./texts.ts"
import { type Span, spans, spanShown, type UsageOf, useUsage } from "./Usage.ts"

type Read = ReturnType<typeof useUsage>

/** Values below one are numbers of nothing countable, so the scale of a count has no fractions. */
const count = (value: number) => number(Math.round(value))
const sum = (values: ReadonlyArray<number>) => values.reduce((all, value) => all + value, 0)

const counted = (
  label: string,
  tone: Series["tone"],
  values: ReadonlyArray<number | null>,
  format: (value: number) => string = count,
): Series => {
  const counts = values.map((value) => value ?? 0)
  return { label, tone, values: counts, whole: format(sum(counts)) }
}

/** The durations of each step. The legend shows the lowest and the highest one of the period. */
const durations = (label: string, tone: Series["tone"], values: ReadonlyArray<number | null>): Series => {
  const measured = values.filter((value) => value !== null)
  const ends = new Set([Math.min(...measured), Math.max(...measured)].map(duration))
  return { label, tone, values, whole: measured.length === 0 ? "–" : [...ends].join(" – ") }
}

const SpanChoice = () => (
  <Segments<Span>
    label={say("period")}
    value={spanShown()}
    options={(Object.keys(spans) as ReadonlyArray<Span>).map((span) => [span, say(span)] as const)}
    onValue={(span) => refine({ span: span === "month" ? undefined : span })}
  />
)

const shared = ({ usage, times }: Read) => ({ times, isReady: usage.data !== undefined })

const Mail = ({ read }: { readonly read: Read }) => (
  <Chart
    {...shared(read)}
    title={say("mail")}
    kind="bars"
    format={count}
    series={[
      counted(say("received"), "main", read.values("mail_received")),
      counted(say("sent"), "second", read.values("mail_sent")),
      counted(say("refused"), "bad", read.values("mail_refused")),
    ]}
  />
)

const Deliveries = ({ read, webhook }: { readonly read: Read; readonly webhook: string | undefined }) => (
  <>
    <Chart
      {...shared(read)}
      title={say("deliveries")}
      kind="bars"
      format={count}
      series={[
        counted(say("succeeded"), "main", read.values("deliveries_succeeded", webhook)),
        counted(say("failed"), "bad", read.values("deliveries_failed", webhook)),
      ]}
    />
    <Chart
      {...shared(read)}
      title={say("delivery_latency")}
      kind="lines"
      format={duration}
      series={[
        durations(say("median"), "main", read.values("delivery_ms_p50", webhook)),
        durations(say("p95"), "second", read.values("delivery_ms_p95", webhook)),
      ]}
    />
  </>
)

const Tunnel = ({ read }: { readonly read: Read }) => {
  const errors = read.values("tunnel_errors")
  return (
    <>
      <Chart
        {...shared(read)}
        title={say("requests")}
        kind="bars"
        format={count}
        series={[
          counted(
            say("answered"),
            "main",
            // Errors may be counted before their requests.
            read.values("tunnel_requests").map((requests, at) => Math.max(0, (requests ?? 0) - (errors[at] ?? 0))),
          ),
          counted(say("errors"), "bad", errors),
        ]}
      />
      <Chart
        {...shared(read)}
        title={say("tunnel_latency")}
        kind="lines"
        format={duration}
        series={[
          durations(say("median"), "main", read.values("tunnel_ms_p50")),
          durations(say("p95"), "second", read.values("tunnel_ms_p95")),
        ]}
      />
    </>
  )
}

type Limit = Answer<"GET /api/limits">["limits"][number]

const limitOf = (limits: ReadonlyArray<Limit> | undefined, name: Limit["name"]) => {
  const found = limits?.find((limit) => limit.name === name)
  return found && { value: found.limit, label: say("limit") }
}

const AccountLimits = ({ read, span }: { readonly read: Read; readonly span: Span }) => {
  const limits = useCall("GET /api/limits").data?.limits
  return (
    <>
      <Chart
        {...shared(read)}
        title={say("calls")}
        kind="bars"
        format={count}
        series={[counted(say("calls"), "main", read.values("api_calls"))]}
      />
      <Chart
        {...shared(read)}
        title={say("transfer")}
        kind="bars"
        format={binaryBytes}
        roundUp={roundedUpBytes}
        series={[
          counted(say("to_agent"), "main", read.values("tunnel_bytes_in"), binaryBytes),
          counted(say("from_agent"), "second", read.values("tunnel_bytes_out"), binaryBytes),
        ]}
        // The limit is one of days.
        limit={span === "day" ? undefined : limitOf(limits, "tunnel_transfer")}
      />
    </>
  )
}

const IdentityLimits = ({
  read,
  span,
  handle,
}: {
  readonly read: Read
  readonly span: Span
  readonly handle: string
}) => {
  const limits = useCall("GET /api/limits", { query: { identity: handle } }).data?.limits
  const sizes = read.values("mailbox_bytes")
  return (
    <>
      <Chart
        {...shared(read)}
        title={say("sent_by")}
        kind="bars"
        format={count}
        series={[counted(say("sent"), "main", read.values("mail_sent"))]}
        // The limit is one of hours.
        limit={span === "day" ? limitOf(limits, "mail_hourly") : undefined}
      />
      <Chart
        {...shared(read)}
        title={say("mailbox")}
        kind="lines"
        format={binaryBytes}
        roundUp={roundedUpBytes}
        series={[
          {
            label: say("size"),
            tone: "main",
            values: sizes,
            whole: binaryBytes(Math.max(0, ...sizes.map((size) => size ?? 0))),
          },
        ]}
        limit={limitOf(limits, "mailbox_bytes")}
      />
    </>
  )
}

const OfLimits = ({ span }: { readonly span: Span }) => {
  const [handle, setHandle] = useState("")
  const identities = useIdentities().data?.identities ?? []
  const read = useUsage(span, handle === "" ? undefined : handle)
  return (
    <>
      <Select label={say("whose")} value={handle} onValue={setHandle}>
        <option value="">{say("account")}</option>
        {identities.map(({ handle }) => (
          <option key={handle} value={handle}>
            {handle}
          </option>
        ))}
      </Select>
      <ProblemNote failure={read.usage.error ?? undefined} onRetry={() => void read.usage.refetch()} />
      <div class="charts">
        {handle === "" ? (
          <AccountLimits read={read} span={span} />
        ) : (
          <IdentityLimits read={read} span={span} handle={handle} />
        )}
      </div>
    </>
  )
}

const OfIdentity = ({ of, span, handle, webhook }: UsageOf & { readonly span: Span }) => {
  const read = useUsage(span, handle)
  return (
    <>
      <ProblemNote failure={read.usage.error ?? undefined} onRetry={() => void read.usage.refetch()} />
      <div class="charts">
        {of === "mail" ? (
          <Mail read={read} />
        ) : of === "tunnel" ? (
          <Tunnel read={read} />
        ) : (
          <Deliveries read={read} webhook={webhook} />
        )}
      </div>
    </>
  )
}

export const UsageCharts = (props: UsageOf) => {
  const span = spanShown()
  return (
    <Section title={say("over_time")} actions={<SpanChoice />}>
      <div class="box padded stack">
        {props.of === "limits" ? <OfLimits span={span} /> : <OfIdentity {...props} span={span} />}
      </div>
    </Section>
  )
}
