/**
 * The audit log. The account holder reads all of it, an Identity the records about itself. Reading the log is audited
 * too.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { callers, Confidential, inRealm, Tagged } from "../account/Policy.ts"
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
  since: Schema.optionalKey(FilterTime.annotate({ description: "Only records from this time or day (UTC) on." })),
  until: Schema.optionalKey(FilterTime.annotate({ description: "Only records before this time or day (UTC)." })),
}

/** The head of the chain. A copy kept elsewhere reveals later changes to earlier records. */
const AuditHead = Schema.Struct({
  org_id: Schema.String.annotate({ description: "The Org that the log belongs to." }),
  seq: Schema.Int.annotate({ description: "The number of the last sealed record." }),
  hash: Schema.String.annotate({ description: "Its hash, in hex." }),
  sealed_at: Schema.String.annotate({ format: "date-time", description: "When it was sealed." }),
  signature: Schema.String.annotate({
    description:
      "ES256 in base64url, over the lines `svc-audit-head-1`, `org_id`, `seq`, `hash` and `sealed_at`, without a final line feed.",
  }),
  key: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: "The public key of the signature (RFC 7517).",
  }),
}).annotate({ identifier: "AuditHead" })

/** Number of reads of one resource by one reader within an hour. */
const AuditUsage = Schema.Struct({
  hour: Timestamp,
  actor: Schema.Struct({
    kind: AuditActorKind.annotate({ description: "Kind of credential." }),
    id: Schema.String.annotate({ description: "The id of the session, the key or the grant." }),
  }).annotate({ description: "Owner of the credential." }),
  action: Schema.String.annotate({ description: "The operation, as in `messages.read`." }),
  tool: Schema.NullOr(Schema.String).annotate({ description: "The tool of an MCP call." }),
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
          short.annotate({ description: "Only records of the session, key or Grant with this id." }),
        ),
        identity: Schema.optionalKey(HandleText.annotate({ description: "Only records about this Identity." })),
        outcome: Schema.optionalKey(AuditOutcome.annotate({ description: "Only records with this outcome." })),
        address: Schema.optionalKey(short.annotate({ description: "Only records from this address." })),
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
          FilterTime.annotate({ description: "Only hours from this time or day (UTC) on; defaults to the last day." }),
        ),
        limit: Limit,
      },
      success: Schema.Struct({
        usage: Schema.Array(AuditUsage).annotate({ description: "The counts, newest hour first." }),
      }),
      error: Unavailable,
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Count reads by reader and resource, per hour"),
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
          description: "Null until a record is sealed, and if `refused_seq` is set.",
        }),
        refused_seq: Schema.optionalKey(
          Schema.Int.annotate({
            description:
              "Set if the stored end of the log differs from what the service sealed: the number of the record at which sealing stopped.",
          }),
        ),
      }),
      error: Unavailable,
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Read the signed head of the audit log"),
    HttpApiEndpoint.get("read", "/api/audit/:id", {
      params: { id: AuditId.annotate({ description: "The id of the resource." }) },
      success: AuditRecord,
      error: [NotFound, Unavailable],
    })
      .pipe(inRealm())
      .annotate(OpenApi.Summary, "Read one record of the audit log")
      .annotate(Confidential, true)
      .annotate(Tagged, true),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "The audit log of the account.") {}
