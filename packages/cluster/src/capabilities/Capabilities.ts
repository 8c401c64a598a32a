/**
 * The list of capabilities, and what is derived from it. A new capability is one more entry; its handlers, work, exports
 * and erasure follow from its record.
 */
import { Effect, Layer } from "effect"
import { account } from "../account/AccountCapability.ts"
import { ExportContents } from "../account/exports/ExportContents.ts"
import { audit } from "../audit/AuditCapability.ts"
import { kept, type HandlerContext, shortLived, type Table } from "../Capability.ts"
import { card } from "../card/CardCapability.ts"
import { connector } from "../connectors/ConnectorCapability.ts"
import { credentials } from "../credentials/CredentialsCapability.ts"
import { event } from "../events/EventCapability.ts"
import { identity } from "../identity/IdentityCapability.ts"
import { BatchedErasure } from "../identity/Teardown.ts"
import { mail } from "../mail/MailCapability.ts"
import { oauth } from "../oauth/OAuthCapability.ts"
import { proof } from "../proof/ProofCapability.ts"
import { tunnel } from "../tunnel/TunnelCapability.ts"
import { usage } from "../usage/UsageCapability.ts"
import { vault } from "../vault/VaultCapability.ts"
import { webhook } from "../webhooks/WebhookCapability.ts"

/** Members of an export and batches of an erasure are written and deleted in this order. */
export const capabilities = [
  identity,
  card,
  mail,
  webhook,
  event,
  account,
  connector,
  vault,
  tunnel,
  usage,
  credentials,
  oauth,
  proof,
  audit,
] as const

const ofService = kept("belongs to the service, not to an account")

/** Tables that belong to no capability. */
export const serviceTables: Readonly<Record<string, Table>> = {
  backup: ofService,
  idempotency_record: shortLived,
  issuer_key: ofService,
  page_view: kept("counts without a person"),
  public_limit: shortLived,
  sealing_canary: ofService,
  service_key: ofService,
  svc_migrations: ofService,
  svc_schema: ofService,
}

type Handlers = IntersectionOf<Effect.Success<ReturnType<(typeof capabilities)[number]["handlers"]>>>
type IntersectionOf<Union> = (Union extends unknown ? (handlers: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never

/** Handlers of all capabilities' messages to the Identity's actor. The actor does not compile if one is missing. */
export const handlers = (actor: HandlerContext) =>
  Effect.map(
    Effect.all(capabilities.map((capability) => capability.handlers(actor))),
    (all) => Object.assign({}, ...all) as Handlers,
  )

export const identityWork = capabilities.map(({ work }) => work.identity).flat()

export const orgWork = capabilities.map(({ work }) => work.org).flat()

/** Services that read, or write without an actor. `cli/serve/roles/Stores.ts` provides them for several roles. */
export type Queries = Layer.Success<(typeof capabilities)[number]["queries"][number]>

export const exportContents = ExportContents.layer(capabilities.map((capability) => capability.exports).flat())

export const batchedErasure = Layer.succeed(
  BatchedErasure,
  capabilities.flatMap(({ tables }) =>
    Object.values<Table>(tables).flatMap(({ erased }) =>
      typeof erased === "object" && "inBatches" in erased ? [erased.inBatches] : [],
    ),
  ),
)
