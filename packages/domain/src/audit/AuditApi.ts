/**
 * The audit log. The account holder reads all of it, an Identity the records about itself. Reading the log is audited
 * too.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { callers, Confidential, inRealm } from "../account/Policy.ts"
import { About } from "../account/EndpointScope.ts"
import { HandleText } from "../handles/HandleParam.ts"
import { AuditId } from "../IdSchemas.ts"
import { Limit, paging } from "../Paging.ts"
import { InvalidCursor, NotFound, Unavailable } from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { FilterTime, Timestamp } from "../Timestamp.ts"
import { AuditActorKind, AuditClass, AuditOutcome, AuditRecord } from "./AuditRecord.ts"

const short = Text.check(Schema.isMaxLength(100))

const span = {
  since: Schema.optionalKey(
    FilterTime.annotate({ description: "Only records from this time, or this day (UTC), on." }),
  ),
  until: Schema.optionalKey(FilterTime.annotate({ description: "Only records before this time, or this day (UTC)." })),
}

/** The head of the chain. A copy kept elsewhere reveals later changes to earlier records. */
export const AuditHead = Schema.Struct({
  org_id: Schema.String.annotate({ description: "The Org whose log it is." }),
  seq: Schema.Int.annotate({ description: "The number of the last record that is sealed." }),
  hash: Schema.String.annotate({ description: "Its hash, in hex." }),
  sealed_at: Schema.String.annotate({ format: "date-time", description: "When it was sealed." }),
  signature: Schema.String.annotate({
    description:
      "ES256 in base64url, over the lines `svc-audit-head-1`, `org_id`, `seq`, `hash` and `sealed_at`, without a line feed at the end.",
  }),
  key: Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "The key that signed (RFC 7517)." }),
}).annotate({ identifier: "AuditHead" })

/** Number of reads of one resource by one reader within an hour. */
export const AuditUsage = Schema.Struct({
  hour: Timestamp,
  actor: Schema.Struct({
    kind: AuditActorKind.annotate({ description: "Kind of credential." }),
    id: Schema.String.annotate({ description: "The id of the session, the key or the grant." }),
  }).annotate({ description: "Owner of the credential." }),
  action: Schema.String.annotate({ description: "What was read, as in `messages.read`." }),
  tool: Schema.NullOr(Schema.String).annotate({ description: "The tool that was called, over MCP." }),
  identity: Schema.NullOr(Schema.String).annotate({ description: "The Handle of the Identity." }),
  count: Schema.Int.annotate({ description: "How often." }),
}).annotate({ identifier: "AuditUsage" })

const JsonLines = HttpApiSchema.StreamUint8Array({ contentType: "application/jsonl" })

export class AuditApi extends HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.get("list", "/api/audit", {
      query: {
        ...span,
        class: Schema.optionalKey(AuditClass.annotate({ description: "Only records of this class." })),
        action: Schema.optionalKey(short.annotate({ description: "Only this action, as in `vault.value`." })),
        actor: Schema.optionalKey(
          short.annotate({ description: "Only what the session, key or Grant of this id did." }),
        ),
        identity: Schema.optionalKey(HandleText.annotate({ description: "Only what was about this Identity." })),
        outcome: Schema.optionalKey(AuditOutcome.annotate({ description: "Only what came out so." })),
        address: Schema.optionalKey(short.annotate({ description: "Only what came from this address." })),
        ...paging,
      },
      success: Schema.Struct({
        records: Schema.Array(AuditRecord).annotate({ description: "The records, newest first." }),
        next_cursor: Schema.NullOr(Schema.String),
      }),
      error: [InvalidCursor, Unavailable],
    })
      .pipe(inRealm())
      .annotate(OpenApi.Summary, "List records of the audit log, newest first")
      .annotate(Confidential, true),
    HttpApiEndpoint.get("usage", "/api/audit/usage", {
      query: {
        since: Schema.optionalKey(
          FilterTime.annotate({ description: "Only hours from this time, or this day (UTC), on; else the last day." }),
        ),
        limit: Limit,
      },
      success: Schema.Struct({
        usage: Schema.Array(AuditUsage).annotate({ description: "The counts, of the newest hour first." }),
      }),
      error: Unavailable,
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "List how often who read what, by the hour"),
    HttpApiEndpoint.get("export", "/api/audit/export", {
      query: span,
      success: JsonLines,
      error: Unavailable,
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Download the sealed records as JSON Lines, with the hashes that chain them")
      .annotate(Confidential, true),
    HttpApiEndpoint.get("head", "/api/audit/head", {
      success: Schema.Struct({
        head: Schema.NullOr(AuditHead).annotate({
          description: "Null while nothing is sealed, and with `refused_seq`.",
        }),
        refused_seq: Schema.optionalKey(
          Schema.Int.annotate({
            description:
              "Set if the end of the log is not what the service sealed: the number of the record at which it refuses to go on.",
          }),
        ),
      }),
      error: Unavailable,
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Read where the chain of the audit log ends, signed"),
    HttpApiEndpoint.get("read", "/api/audit/:id", {
      params: { id: AuditId.annotate({ description: "The id of the resource." }) },
      success: AuditRecord,
      error: [NotFound, Unavailable],
    })
      .pipe(inRealm())
      .annotate(OpenApi.Summary, "Read one record of the audit log")
      .annotate(Confidential, true),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "The audit log of the account.") {}
