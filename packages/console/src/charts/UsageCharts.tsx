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
import { type Point, type Span, spans, spanShown, type UsageOf, useUsage } from "./Usage.ts"

type Read = ReturnType<typeof useUsage>

/** Values below one are numbers of nothing countable, so the scale of a count has no fractions. */
const count = (value: number) => number(Math.round(value))
const sum = (values: ReadonlyArray<number>) => values.reduce((all, value) => all + value, 0)

const counted = (
  label: string,
  tone: Series["tone"],
  values: ReadonlyArray<number>,
  format: (value: number) => string = count,
): Series => ({ label, tone, values, whole: format(sum(values)) })

const ofPoints = ({ points }: Read, value: (point: Point) => number) =>
  points.map((point) => (point === undefined ? 0 : value(point)))

/** The mean duration of each step; the mean of the period counts every attempt once. */
const latency = (steps: ReadonlyArray<{ readonly mean: number | null; readonly of: number } | undefined>): Series => {
  const measured = steps.flatMap((step) =>
    step === undefined || step.mean === null ? [] : [{ ...step, mean: step.mean }],
  )
  const all = sum(measured.map(({ of }) => of))
  return {
    label: say("mean"),
    tone: "main",
    values: steps.map((step) => step?.mean ?? null),
    whole: all === 0 ? "–" : duration(sum(measured.map(({ mean, of }) => mean * of)) / all),
  }
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
      counted(
        say("received"),
        "main",
        ofPoints(read, (point) => point.mail_received),
      ),
      counted(
        say("sent"),
        "second",
        ofPoints(read, (point) => point.mail_sent),
      ),
      counted(
        say("refused"),
        "bad",
        ofPoints(read, (point) => point.mail_refused),
      ),
    ]}
  />
)

const Deliveries = ({ read, webhook }: { readonly read: Read; readonly webhook: string | undefined }) => {
  const own = new Map(
    read.usage.data?.webhooks.flatMap((step) => (step.webhook_id === webhook ? [[Date.parse(step.at), step]] : [])),
  )
  const steps = read.starts.map((at) => own.get(at))
  return (
    <>
      <Chart
        {...shared(read)}
        title={say("deliveries")}
        kind="bars"
        format={count}
        series={[
          counted(
            say("succeeded"),
            "main",
            steps.map((step) => step?.succeeded ?? 0),
          ),
          counted(
            say("failed"),
            "bad",
            steps.map((step) => step?.failed ?? 0),
          ),
        ]}
      />
      <Chart
        {...shared(read)}
        title={say("delivery_latency")}
        kind="lines"
        format={duration}
        series={[latency(steps.map((step) => step && { mean: step.latency_ms, of: step.succeeded + step.failed }))]}
      />
    </>
  )
}

const Tunnel = ({ read }: { readonly read: Read }) => (
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
          ofPoints(read, (point) => Math.max(0, point.tunnel_requests - point.tunnel_errors)),
        ),
        counted(
          say("errors"),
          "bad",
          ofPoints(read, (point) => point.tunnel_errors),
        ),
      ]}
    />
    <Chart
      {...shared(read)}
      title={say("tunnel_latency")}
      kind="lines"
      format={duration}
      series={[
        latency(
          read.points.map(
            (point) => point && { mean: point.tunnel_latency_ms, of: point.tunnel_requests - point.tunnel_errors },
          ),
        ),
      ]}
    />
  </>
)

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
        series={[
          counted(
            say("calls"),
            "main",
            ofPoints(read, (point) => point.api_calls),
          ),
        ]}
      />
      <Chart
        {...shared(read)}
        title={say("transfer")}
        kind="bars"
        format={binaryBytes}
        roundUp={roundedUpBytes}
        series={[
          counted(
            say("to_agent"),
            "main",
            ofPoints(read, (point) => point.tunnel_bytes_in),
            binaryBytes,
          ),
          counted(
            say("from_agent"),
            "second",
            ofPoints(read, (point) => point.tunnel_bytes_out),
            binaryBytes,
          ),
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
  const sizes = read.points.map((point) => point?.mailbox_bytes ?? null)
  return (
    <>
      <Chart
        {...shared(read)}
        title={say("sent_by")}
        kind="bars"
        format={count}
        series={[
          counted(
            say("sent"),
            "main",
            ofPoints(read, (point) => point.mail_sent),
          ),
        ]}
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
