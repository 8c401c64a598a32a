/** The Identity in the API, with its workflows as checklists (interface.md "Identity", decisions.md "Resources"). */
import { Schema } from "effect"
import { ApiKey } from "../account/Account.ts"
import { IdentityStatus } from "../IdentityRef.ts"
import { Uuid } from "../IdSchemas.ts"
import { ShownEmail, ShownUrl } from "../Text.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"

export const SagaKind = Schema.Literals(["provisioning", "teardown"])
export type SagaKind = typeof SagaKind.Type

/** The steps of each workflow in order. Deletion reverses provisioning. */
export const sagaSteps = {
  provisioning: ["mailbox", "tunnel", "card", "identity_key"],
  teardown: ["identity_keys", "connectors", "card", "tunnel", "mailbox"],
} as const satisfies { readonly [K in SagaKind]: ReadonlyArray<string> }
export type StepName = (typeof sagaSteps)[SagaKind][number]
export const StepName = Schema.Literals(["mailbox", "tunnel", "card", "identity_key", "identity_keys", "connectors"])

const StepStatus = Schema.Literals(["pending", "running", "retrying", "done", "failed"])
type StepStatus = typeof StepStatus.Type

export const SagaStep = Schema.Struct({
  name: StepName,
  status: StepStatus,
  attempts: Schema.Int,
  error: Schema.NullOr(Schema.String),
  finished_at: TimestampOrNull,
})
export type SagaStep = typeof SagaStep.Type

export const Saga = Schema.Struct({
  kind: SagaKind,
  status: Schema.Literals(["running", "completed", "failed"]),
  steps: Schema.Array(SagaStep),
  started_at: Timestamp,
  finished_at: TimestampOrNull,
}).annotate({ identifier: "Saga" })
export type Saga = typeof Saga.Type

export const Identity = Schema.Struct({
  id: Uuid,
  handle: Schema.String,
  status: IdentityStatus,
  email: ShownEmail,
  profile_url: ShownUrl,
  card_url: ShownUrl,
  tunnel: Schema.Struct({
    hostname: Schema.String,
    port: Schema.NullOr(Schema.Int),
    url: ShownUrl,
    connected: Schema.Boolean,
  }),
  saga: Saga,
  /** Time from sign-up to ready. Only the first ready Identity of an Org has it. */
  onboarding: Schema.NullOr(Schema.Struct({ signed_up_at: Timestamp, ready_at: Timestamp, seconds: Schema.Finite })),
  created_at: Timestamp,
}).annotate({ identifier: "Identity" })
export type Identity = typeof Identity.Type

/** Credentials for one of the mail servers. */
const MailCredentials = Schema.Struct({
  host: Schema.String,
  port: Schema.Int,
  security: Schema.Literals(["tls", "starttls", "none"]),
  username: Schema.String,
  password: Schema.String,
})

/** The show-once secrets. All members are absent if no secret is available (interface.md "Show-once secrets"). */
export const ShowOnceSecrets = Schema.Struct({
  identity_key: Schema.optionalKey(Schema.String),
  api_key: Schema.optionalKey(ApiKey),
  imap: Schema.optionalKey(MailCredentials),
  /** Credentials for sending, with the same user name and password. */
  smtp: Schema.optionalKey(MailCredentials),
  expires_at: Schema.optionalKey(Timestamp),
}).annotate({ identifier: "ShowOnceSecrets" })
export type ShowOnceSecrets = typeof ShowOnceSecrets.Type
