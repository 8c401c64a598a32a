/**
 * Every refusal the service can give, in one place: the HTTP status, what the caller should do
 * (`agent_hint`), the title, and the two sentences its page at `/problems/{code}` shows.
 *
 * `fix_call`: the call is wrong, change it. `wait`: the same call may succeed later. `stop`: repeating does not help.
 */
export type AgentHint = "fix_call" | "wait" | "stop"

export interface Row {
  readonly status: number
  readonly agent_hint: AgentHint
  readonly title: string
  readonly meaning: string
  readonly remedy: string
}

const row = <const Status extends number>(
  status: Status,
  agent_hint: AgentHint,
  title: string,
  meaning: string,
  remedy: string,
) => ({ status, agent_hint, title, meaning, remedy })

export const table = {
  invalid_request: row(
    400,
    "fix_call",
    "The request is not valid",
    "A member, query parameter or the body itself does not fit what the endpoint takes: malformed JSON, a wrong type, a missing or an unknown member.",
    "`errors` names each place as a JSON Pointer. Correct it and call again.",
  ),
  invalid_cursor: row(
    400,
    "fix_call",
    "The cursor was not issued by this service",
    "A cursor is opaque: it is only valid as it was given in `next_cursor`.",
    "Start again without a cursor, and pass `next_cursor` back unchanged.",
  ),
  unauthenticated: row(
    401,
    "fix_call",
    "A valid credential is needed",
    "The call carried no credential, or one that is unknown, revoked or expired.",
    "Send `Authorization: Bearer <credential>` with a live session token, Admin Key or Identity Key.",
  ),
  account_deleting: row(
    401,
    "stop",
    "The account is being deleted",
    "Deletion of this account was accepted; from then on every credential of it is refused.",
    "Nothing can be done with this account any more.",
  ),
  org_scope_required: row(
    403,
    "stop",
    "This operation needs Org scope",
    "An Identity Key may act on its own Identity only; this operation concerns the whole Org.",
    "Use an Admin Key or a console session.",
  ),
  foreign_identity: row(
    403,
    "stop",
    "This Identity Key belongs to another Identity",
    "An Identity Key may name only its own Identity.",
    "Use that Identity's own key, or an Admin Key.",
  ),
  session_required: row(
    403,
    "stop",
    "This operation needs a console session",
    "It is the account holder's own act; a key belongs to an agent or a machine.",
    "Sign in with a magic link and use the session token.",
  ),
  admin_required: row(
    403,
    "stop",
    "This operation needs an Admin Key or a session",
    "An Identity Key asked for something only the account holder or an Admin Key may do.",
    "Use an Admin Key or a console session.",
  ),
  invite_required: row(
    403,
    "stop",
    "An invitation is needed to sign up",
    "Sign-up is not open to everyone, and the call carried no valid `invite_code`.",
    "Ask the operator for an invitation. Existing accounts sign in without one.",
  ),
  recipient_not_allowed: row(
    403,
    "stop",
    "A recipient is not an Allowed Recipient",
    "Mail goes only to Allowed Recipients; nothing was sent to anyone.",
    "`errors` names each refused recipient. An Admin Key can add an address.",
  ),
  not_found: row(
    404,
    "fix_call",
    "There is no such resource",
    "Nothing of that name or id exists in this Org. Resources of other Orgs answer the same.",
    "Check the path; list the collection to see what exists.",
  ),
  method_not_allowed: row(
    405,
    "fix_call",
    "The resource does not have this method",
    "The path exists, the method does not.",
    "The `Allow` header lists the methods of this path.",
  ),
  not_acceptable: row(
    406,
    "fix_call",
    "The answer cannot be given in the asked media type",
    "The `Accept` header excludes every representation of this resource.",
    "Accept `application/json`.",
  ),
  conflict: row(
    409,
    "fix_call",
    "The request conflicts with the present state",
    "The resource is in a state in which this call makes no sense.",
    "Read the resource, then decide.",
  ),
  handle_taken: row(
    409,
    "fix_call",
    "The Handle is taken",
    "Another Identity holds this name or a spelling of it, or once held it: a Handle is never issued twice.",
    "Choose another name. `GET /api/handles/{handle}` tells whether one is free.",
  ),
  handle_reserved: row(
    409,
    "stop",
    "The Handle is reserved",
    "Role addresses, infrastructure names and brands are kept for their verified rights holders.",
    "Choose another name; a rights holder asks support.",
  ),
  handle_invalid: row(
    400,
    "fix_call",
    "The Handle is not valid",
    "A Handle has 3 to 63 characters of a-z, 0-9 and hyphen, is a DNS label, and has three characters besides its hyphens.",
    "`detail` names the rule that was broken.",
  ),
  identity_busy: row(
    409,
    "wait",
    "The Identity is being provisioned",
    "Its provisioning saga is running; it can be deleted when that has ended.",
    "Wait for `ready` or `failed`, then call again.",
  ),
  identity_not_ready: row(
    409,
    "wait",
    "The Identity is not ready",
    "The Identity is provisioning, failed or deleting; it takes no writes now. Reads work.",
    "Wait while it is provisioning; retry or delete a failed one.",
  ),
  identity_quota_exhausted: row(
    429,
    "stop",
    "The Org's Identity quota is used up",
    "The quota counts every Identity the Org ever created, deleted ones included.",
    "Ask support for a larger quota.",
  ),
  tos_not_accepted: row(
    422,
    "fix_call",
    "The Terms of Service must be accepted",
    "First contact with an email address needs the account holder's acceptance of the Terms.",
    "Show the Terms to the account holder and send `tos_accepted: true`.",
  ),
  tos_version_mismatch: row(
    409,
    "fix_call",
    "This is not the current version of the Terms",
    "The acceptance names a version that is not the one in force.",
    "Read `tos.current_version` of the session and accept that.",
  ),
  magic_link_invalid: row(
    400,
    "stop",
    "The magic link does not work any more",
    "The token is unknown, was used already, or has expired.",
    "Request a new link.",
  ),
  authorization_pending: row(
    400,
    "wait",
    "The device login is not confirmed yet",
    "The account holder has neither approved nor denied the user code.",
    "Poll again after `interval_seconds`.",
  ),
  slow_down: row(
    400,
    "wait",
    "The device login is polled too fast",
    "Polls came faster than the interval; it is five seconds longer from now on.",
    "Wait five seconds longer between polls.",
  ),
  device_code_denied: row(
    400,
    "stop",
    "The device login was denied",
    "The account holder denied the user code; no key was made.",
    "Start a new login if the account holder wants one.",
  ),
  device_code_expired: row(
    400,
    "stop",
    "The device code has expired",
    "The login was not confirmed and collected in time.",
    "Start a new login.",
  ),
  device_code_used: row(
    400,
    "stop",
    "The key was collected already",
    "The key of a device login is in exactly one answer, and that was given.",
    "Start a new login if the key was lost.",
  ),
  device_code_invalid: row(
    400,
    "stop",
    "The device code is unknown",
    "No device login has this device code.",
    "Start a new login.",
  ),
  device_authorization_settled: row(
    409,
    "stop",
    "The device login is settled",
    "It was approved, denied, collected, or has expired; a decision is made once.",
    "Start a new login.",
  ),
  confirmation_mismatch: row(
    400,
    "fix_call",
    "The confirmation does not match",
    "Deleting the account needs `confirm` to be the account's own email address.",
    "Send the account's email address as `confirm`.",
  ),
  secret_name_invalid: row(
    400,
    "fix_call",
    "The secret's name is not valid",
    "A name has 1 to 128 lowercase letters, digits, dots, dashes and underscores; the first is a letter or digit.",
    "Choose such a name.",
  ),
  precondition_failed: row(
    412,
    "fix_call",
    "The resource has changed",
    "`If-Match` names another version than the present one, or the resource does not exist.",
    "Read the resource again and decide with its `ETag`.",
  ),
  idempotency_key_reused: row(
    422,
    "fix_call",
    "The Idempotency-Key was used for another request",
    "The same key came with another body.",
    "Use a new key for a new request.",
  ),
  idempotency_key_in_progress: row(
    409,
    "wait",
    "The first request with this Idempotency-Key is still running",
    "Its answer is not known yet.",
    "Wait a moment and repeat the request with the same key.",
  ),
  mail_relay_unavailable: row(
    503,
    "wait",
    "The message could not be handed over",
    "The mail relay did not take the message just now.",
    "Try again later.",
  ),
  payload_too_large: row(
    413,
    "fix_call",
    "The body is too large",
    "The request body is over the limit of this endpoint.",
    "Send a smaller body.",
  ),
  unsupported_media_type: row(
    415,
    "fix_call",
    "The body's media type is not supported",
    "The endpoint does not take bodies of this `Content-Type`.",
    "Send `application/json`.",
  ),
  rate_limited: row(
    429,
    "wait",
    "Too many calls",
    "A rate limit is used up for now.",
    "Wait `retry_after_seconds` and call again.",
  ),
  webhook_target_refused: row(
    400,
    "fix_call",
    "The Webhook's target is refused",
    "A target is an https URL without credentials whose host resolves to public addresses only.",
    "`detail` names the reason. Give another URL.",
  ),
  webhook_mismatch: row(
    409,
    "fix_call",
    "The Webhook does not belong to the Event's Identity",
    "An Event can be replayed only to a Webhook of the Identity it concerns; Org-level Events concern none.",
    "Name a Webhook of that Identity.",
  ),
  unavailable: row(
    503,
    "wait",
    "A part of the service is out of reach",
    "An actor, the database or another part did not answer in time. A write may have happened.",
    "Repeat the call with the same `Idempotency-Key` after `retry_after_seconds`.",
  ),
  internal: row(
    500,
    "wait",
    "Something went wrong on our side",
    "The service has a defect; the request id finds it in the log.",
    "Try again later, and tell support the request id if it stays.",
  ),
} as const satisfies Record<string, Row>

export type Code = keyof typeof table
export const codes = Object.keys(table) as ReadonlyArray<Code>
