/** The overview of an account, in one response: what needs a person, the activity of the last days, and the busiest Identities. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { About } from "../account/EndpointScope.ts"
import { callers, Confidential } from "../account/Policy.ts"
import { Event } from "../events/Event.ts"
import { IdentityStatus } from "../IdentityRef.ts"
import { Unavailable } from "../problems/Problem.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"
import { UsageSeries } from "./UsageApi.ts"

/** Days of activity in the overview, including today. */
export const overviewDays = 14
/** Maximum number of Identities in the overview. */
export const overviewIdentities = 12
/** Maximum number of Events in the overview. */
export const overviewEvents = 10
/** Maximum number of needs of each kind. */
export const needsOfKind = 20
/** How long before the expiry of a key a person should know. */
export const keyNoticeMillis = 7 * 86_400_000

const text = (description: string) => Schema.NullOr(Schema.String).annotate({ description })

const Need = Schema.Struct({
  kind: Schema.Literals(["provisioning", "approval", "sign_in", "webhook", "limit", "key"]).annotate({
    description:
      "Matters that need a person: a step of provisioning or deletion that failed, a message that waits for approval, a sign-in at a site that waits for approval, a Webhook whose latest deliveries all failed, a limit that is used to 80% or more, a key that expires within 7 days.",
  }),
  identity: text("The Handle of the Identity; null if the whole account is concerned."),
  id: text("The id of the message, sign-in, Webhook or key; null for the other kinds."),
  name: Schema.String.annotate({
    description: "The step, the subject, the site, the URL, the name of the limit, or the name of the key.",
  }),
  reason: text("Why the latest attempt of a Webhook failed; null for the other kinds."),
  at: TimestampOrNull.annotate({
    description:
      "When the process started, approval was requested, or since when a Webhook fails; when the key expires; null for limits.",
  }),
}).annotate({ identifier: "Need" })
export type Need = typeof Need.Type

const IdentityOverview = Schema.Struct({
  handle: Schema.String.annotate({ description: "The Handle." }),
  status: IdentityStatus.annotate({ description: "The status of the Identity." }),
  email: Schema.String.annotate({ description: "The mail address." }),
  tunnel_connected: Schema.Boolean.annotate({ description: "Whether an agent is connected to the Tunnel." }),
  activity: Schema.Array(Schema.Int).annotate({
    description: `Messages, delivery attempts, requests through the Tunnel and API calls on each of the last ${overviewDays} days (UTC); today is the last one.`,
  }),
  latest_message: Schema.NullOr(
    Schema.Struct({
      subject: Schema.String.annotate({ description: "The subject." }),
      from: text("The address of the sender; null if the message has none."),
      received_at: Timestamp.annotate({ description: "When it was received or sent." }),
    }),
  ).annotate({ description: "The newest message of the Mailbox; null if the Mailbox is empty." }),
}).annotate({ identifier: "IdentityOverview" })
export type IdentityOverview = typeof IdentityOverview.Type

const Overview = Schema.Struct({
  needs: Schema.Array(Need).annotate({
    description: `What needs a person now, at most ${needsOfKind} of each kind. Empty if everything is fine.`,
  }),
  starts_at: Timestamp.annotate({ description: "The start of the first day of `series`." }),
  ends_at: Timestamp.annotate({ description: "The end of today (UTC)." }),
  series: Schema.Array(UsageSeries).annotate({
    description: `A series of each metric of the account on the last ${overviewDays} days (UTC). A day in which nothing was counted has no point.`,
  }),
  identities: Schema.Array(IdentityOverview).annotate({
    description: `The ${overviewIdentities} Identities with the most activity in these days.`,
  }),
  events: Schema.Array(Event).annotate({ description: `The latest ${overviewEvents} Events, newest first.` }),
}).annotate({ identifier: "Overview" })
export type Overview = typeof Overview.Type

export class OverviewApi extends HttpApiGroup.make("overview")
  .add(
    HttpApiEndpoint.get("read", "/api/overview", { success: Overview, error: [Unavailable] })
      .pipe(
        callers(
          "session",
          "The overview contains messages, keys and Webhooks of the whole account for its account holder.",
        ),
      )
      .annotate(OpenApi.Summary, "Read what needs a person, and the activity of the last days"),
  )
  .annotateEndpoints(About, "account")
  .annotateEndpoints(Confidential, true)
  .annotate(OpenApi.Description, "The account at one glance.") {}
