/**
 * Typed problems (RFC 9457), one class per code of {@link table}. Operations fail with them, messages between
 * processes carry them, and the HTTP edge adds what only it knows: `instance` (the request id) and `doc_url`.
 */
import { Effect, Schema } from "effect"
import { HttpApiError } from "effect/http-api"
import { type AgentHint, type Code, table } from "./Table.ts"

/** A violation in a request; `path` is a JSON Pointer (RFC 6901). */
export const Violation = Schema.Struct({ path: Schema.String, message: Schema.String })
export type Violation = typeof Violation.Type

/** The members of every problem besides those of RFC 9457. */
const members = <C extends Code>(code: C) => ({
  code: Schema.tag(code),
  detail: Schema.String,
  agent_hint: Schema.Literals(["fix_call", "wait", "stop"]).pipe(
    Schema.withConstructorDefault(Effect.succeed<AgentHint>(table[code].agent_hint)),
  ),
  instance: Schema.optionalKey(Schema.String),
  doc_url: Schema.optionalKey(Schema.String),
  errors: Schema.optionalKey(Schema.Array(Violation)),
  retry_after_seconds: Schema.optionalKey(Schema.Int),
})

/** `type` is a relative reference (RFC 9457 section 3.1.1), so it is the same in every deployment. */
const problem =
  <Self>() =>
  <const C extends Code>(code: C) =>
    HttpApiError.Problem<Self>()(
      code,
      { type: `/problems/${code}`, status: table[code].status, title: table[code].title },
      members(code),
    )

/** Defines a problem that names scopes. */
const aboutScopes =
  <Self>() =>
  <const C extends Code>(code: C) =>
    HttpApiError.Problem<Self>()(
      code,
      { type: `/problems/${code}`, status: table[code].status, title: table[code].title },
      {
        ...members(code),
        scopes: Schema.optionalKey(Schema.Array(Schema.String)),
        /** The page on which the account holder changes the credential's scopes. */
        widen_url: Schema.optionalKey(Schema.String),
      },
    )

export class InvalidRequest extends problem<InvalidRequest>()("invalid_request") {}
export class InvalidCursor extends problem<InvalidCursor>()("invalid_cursor") {}
export class Unauthenticated extends problem<Unauthenticated>()("unauthenticated") {}
export class AccountDeleting extends problem<AccountDeleting>()("account_deleting") {}
export class GrantRevoked extends problem<GrantRevoked>()("grant_revoked") {}
export class KeyExpired extends problem<KeyExpired>()("key_expired") {}
export class ScopeMissing extends aboutScopes<ScopeMissing>()("scope_missing") {}
export class IdentityNotGranted extends problem<IdentityNotGranted>()("identity_not_granted") {}
export class NetworkRefused extends problem<NetworkRefused>()("network_refused") {}
export class OriginRefused extends problem<OriginRefused>()("origin_refused") {}
export class ScopeUnknown extends aboutScopes<ScopeUnknown>()("scope_unknown") {}
export class ScopeExceeds extends aboutScopes<ScopeExceeds>()("scope_exceeds") {}
export class KeyQuotaExhausted extends problem<KeyQuotaExhausted>()("key_quota_exhausted") {}
export class KeyReplaced extends problem<KeyReplaced>()("key_replaced") {}
export class OrgScopeRequired extends problem<OrgScopeRequired>()("org_scope_required") {}
export class ForeignIdentity extends problem<ForeignIdentity>()("foreign_identity") {}
export class SessionRequired extends problem<SessionRequired>()("session_required") {}
export class AdminRequired extends problem<AdminRequired>()("admin_required") {}
export class InviteRequired extends problem<InviteRequired>()("invite_required") {}
export class RecipientNotAllowed extends problem<RecipientNotAllowed>()("recipient_not_allowed") {}
export class NotFound extends problem<NotFound>()("not_found") {}
export class MethodNotAllowed extends problem<MethodNotAllowed>()("method_not_allowed") {}
class NotAcceptable extends problem<NotAcceptable>()("not_acceptable") {}
export class ContentChanged extends problem<ContentChanged>()("content_changed") {}
export class Conflict extends problem<Conflict>()("conflict") {}
export class AlgorithmUnsupported extends problem<AlgorithmUnsupported>()("algorithm_unsupported") {}
export class AudienceNotAllowed extends problem<AudienceNotAllowed>()("audience_not_allowed") {}
export class SignInInvalid extends problem<SignInInvalid>()("sign_in_invalid") {}
export class UrlInvalid extends problem<UrlInvalid>()("url_invalid") {}
export class KeyProofInvalid extends problem<KeyProofInvalid>()("key_proof_invalid") {}
export class HandleTaken extends problem<HandleTaken>()("handle_taken") {}
export class HandleReserved extends problem<HandleReserved>()("handle_reserved") {}
export class HandleInvalid extends problem<HandleInvalid>()("handle_invalid") {}
export class IdentityBusy extends problem<IdentityBusy>()("identity_busy") {}
export class IdentityNotReady extends problem<IdentityNotReady>()("identity_not_ready") {}
export class IdentityQuotaExhausted extends problem<IdentityQuotaExhausted>()("identity_quota_exhausted") {}
export class TosNotAccepted extends problem<TosNotAccepted>()("tos_not_accepted") {}
export class TosVersionMismatch extends problem<TosVersionMismatch>()("tos_version_mismatch") {}
export class MagicLinkInvalid extends problem<MagicLinkInvalid>()("magic_link_invalid") {}
export class AuthorizationPending extends problem<AuthorizationPending>()("authorization_pending") {}
export class SlowDown extends problem<SlowDown>()("slow_down") {}
export class DeviceCodeDenied extends problem<DeviceCodeDenied>()("device_code_denied") {}
export class DeviceCodeExpired extends problem<DeviceCodeExpired>()("device_code_expired") {}
export class DeviceCodeUsed extends problem<DeviceCodeUsed>()("device_code_used") {}
export class DeviceCodeInvalid extends problem<DeviceCodeInvalid>()("device_code_invalid") {}
export class DeviceAuthorizationSettled extends problem<DeviceAuthorizationSettled>()("device_authorization_settled") {}
export class ConfirmationMismatch extends problem<ConfirmationMismatch>()("confirmation_mismatch") {}
export class SecretNameInvalid extends problem<SecretNameInvalid>()("secret_name_invalid") {}
export class PreconditionFailed extends problem<PreconditionFailed>()("precondition_failed") {}
export class IdempotencyKeyReused extends problem<IdempotencyKeyReused>()("idempotency_key_reused") {}
export class IdempotencyKeyInProgress extends problem<IdempotencyKeyInProgress>()("idempotency_key_in_progress") {}
export class MailPaused extends problem<MailPaused>()("mail_paused") {}
export class MessageInvalid extends problem<MessageInvalid>()("message_invalid") {}
export class MessageTooLarge extends problem<MessageTooLarge>()("message_too_large") {}
export class MailRelayUnavailable extends problem<MailRelayUnavailable>()("mail_relay_unavailable") {}
class TunnelAgentOffline extends problem<TunnelAgentOffline>()("tunnel_agent_offline") {}
class TunnelNotFound extends problem<TunnelNotFound>()("tunnel_not_found") {}
class TunnelLocalRefused extends problem<TunnelLocalRefused>()("tunnel_local_refused") {}
class TunnelLinkLost extends problem<TunnelLinkLost>()("tunnel_link_lost") {}
class TunnelLocalTimeout extends problem<TunnelLocalTimeout>()("tunnel_local_timeout") {}
class TunnelTransferBlocked extends problem<TunnelTransferBlocked>()("tunnel_transfer_blocked") {}
class TunnelDuplicateEdge extends problem<TunnelDuplicateEdge>()("tunnel_duplicate_edge") {}
class TunnelClientOutdated extends problem<TunnelClientOutdated>()("tunnel_client_outdated") {}
export class PayloadTooLarge extends problem<PayloadTooLarge>()("payload_too_large") {}
export class HeadersTooLarge extends problem<HeadersTooLarge>()("headers_too_large") {}
export class RequestTimeout extends problem<RequestTimeout>()("request_timeout") {}
export class RangeNotSatisfiable extends problem<RangeNotSatisfiable>()("range_not_satisfiable") {}
export class UnsupportedMediaType extends problem<UnsupportedMediaType>()("unsupported_media_type") {}
export class RateLimited extends problem<RateLimited>()("rate_limited") {}
export class WebhookTargetRefused extends problem<WebhookTargetRefused>()("webhook_target_refused") {}
export class WebhookMismatch extends problem<WebhookMismatch>()("webhook_mismatch") {}
export class ConnectorNotConnected extends problem<ConnectorNotConnected>()("connector_not_connected") {}
export class ConnectorCapabilityUnsupported extends problem<ConnectorCapabilityUnsupported>()(
  "connector_capability_unsupported",
) {}
export class ConnectorOptionUnknown extends problem<ConnectorOptionUnknown>()("connector_option_unknown") {}
export class ConnectorPaused extends problem<ConnectorPaused>()("connector_paused") {}
export class ConnectorStopped extends problem<ConnectorStopped>()("connector_stopped") {}
export class ConnectorCredentialRefused extends problem<ConnectorCredentialRefused>()("connector_credential_refused") {}
export class ConnectorPlatformError extends problem<ConnectorPlatformError>()("connector_platform_error") {}
export class ConnectorPlatformRateLimited extends problem<ConnectorPlatformRateLimited>()(
  "connector_platform_rate_limited",
) {}
export class ConnectorStateInvalid extends problem<ConnectorStateInvalid>()("connector_state_invalid") {}
export class Unavailable extends problem<Unavailable>()("unavailable") {}
export class AuditUnavailable extends problem<AuditUnavailable>()("audit_unavailable") {}
export class Internal extends problem<Internal>()("internal") {}

/** Every problem class by its code; the type rejects a class under the code of another one. */
export const byCode = {
  invalid_request: InvalidRequest,
  invalid_cursor: InvalidCursor,
  unauthenticated: Unauthenticated,
  account_deleting: AccountDeleting,
  key_expired: KeyExpired,
  grant_revoked: GrantRevoked,
  scope_missing: ScopeMissing,
  identity_not_granted: IdentityNotGranted,
  network_refused: NetworkRefused,
  origin_refused: OriginRefused,
  scope_unknown: ScopeUnknown,
  scope_exceeds: ScopeExceeds,
  key_quota_exhausted: KeyQuotaExhausted,
  key_replaced: KeyReplaced,
  org_scope_required: OrgScopeRequired,
  foreign_identity: ForeignIdentity,
  session_required: SessionRequired,
  admin_required: AdminRequired,
  invite_required: InviteRequired,
  recipient_not_allowed: RecipientNotAllowed,
  not_found: NotFound,
  method_not_allowed: MethodNotAllowed,
  not_acceptable: NotAcceptable,
  content_changed: ContentChanged,
  conflict: Conflict,
  algorithm_unsupported: AlgorithmUnsupported,
  key_proof_invalid: KeyProofInvalid,
  audience_not_allowed: AudienceNotAllowed,
  sign_in_invalid: SignInInvalid,
  url_invalid: UrlInvalid,
  handle_taken: HandleTaken,
  handle_reserved: HandleReserved,
  handle_invalid: HandleInvalid,
  identity_busy: IdentityBusy,
  identity_not_ready: IdentityNotReady,
  identity_quota_exhausted: IdentityQuotaExhausted,
  tos_not_accepted: TosNotAccepted,
  tos_version_mismatch: TosVersionMismatch,
  magic_link_invalid: MagicLinkInvalid,
  authorization_pending: AuthorizationPending,
  slow_down: SlowDown,
  device_code_denied: DeviceCodeDenied,
  device_code_expired: DeviceCodeExpired,
  device_code_used: DeviceCodeUsed,
  device_code_invalid: DeviceCodeInvalid,
  device_authorization_settled: DeviceAuthorizationSettled,
  confirmation_mismatch: ConfirmationMismatch,
  secret_name_invalid: SecretNameInvalid,
  precondition_failed: PreconditionFailed,
  idempotency_key_reused: IdempotencyKeyReused,
  idempotency_key_in_progress: IdempotencyKeyInProgress,
  mail_paused: MailPaused,
  message_invalid: MessageInvalid,
  message_too_large: MessageTooLarge,
  mail_relay_unavailable: MailRelayUnavailable,
  tunnel_agent_offline: TunnelAgentOffline,
  tunnel_not_found: TunnelNotFound,
  tunnel_local_refused: TunnelLocalRefused,
  tunnel_link_lost: TunnelLinkLost,
  tunnel_local_timeout: TunnelLocalTimeout,
  tunnel_transfer_blocked: TunnelTransferBlocked,
  tunnel_duplicate_edge: TunnelDuplicateEdge,
  tunnel_client_outdated: TunnelClientOutdated,
  payload_too_large: PayloadTooLarge,
  headers_too_large: HeadersTooLarge,
  request_timeout: RequestTimeout,
  range_not_satisfiable: RangeNotSatisfiable,
  unsupported_media_type: UnsupportedMediaType,
  rate_limited: RateLimited,
  webhook_target_refused: WebhookTargetRefused,
  webhook_mismatch: WebhookMismatch,
  connector_not_connected: ConnectorNotConnected,
  connector_capability_unsupported: ConnectorCapabilityUnsupported,
  connector_option_unknown: ConnectorOptionUnknown,
  connector_paused: ConnectorPaused,
  connector_stopped: ConnectorStopped,
  connector_credential_refused: ConnectorCredentialRefused,
  connector_platform_error: ConnectorPlatformError,
  connector_platform_rate_limited: ConnectorPlatformRateLimited,
  connector_state_invalid: ConnectorStateInvalid,
  unavailable: Unavailable,
  audit_unavailable: AuditUnavailable,
  internal: Internal,
} satisfies { readonly [C in Code]: new (...args: never) => { readonly code: C } }

export type Problem = InstanceType<(typeof byCode)[Code]>

/** Returns whether a failure is a problem. */
export const isProblem = (u: unknown): u is Problem =>
  typeof u === "object" && u !== null && "_tag" in u && typeof u._tag === "string" && Object.hasOwn(byCode, u._tag)
