/** An Identity and what belongs to it: its Handle, mail, Webhooks and Vault. */
import { row } from "./Row.ts"

export const identity = {
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
  recipient_not_allowed: row(
    403,
    "stop",
    "A recipient is not an Allowed Recipient",
    "Mail goes only to Allowed Recipients; nothing was sent to anyone.",
    "`errors` names each refused recipient. An Admin Key can add an address.",
  ),
  mail_relay_unavailable: row(
    503,
    "wait",
    "The message could not be handed over",
    "The mail relay did not take the message just now.",
    "Try again later.",
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
  secret_name_invalid: row(
    400,
    "fix_call",
    "The secret's name is not valid",
    "A name has 1 to 128 lowercase letters, digits, dots, dashes and underscores; the first is a letter or digit.",
    "Choose such a name.",
  ),
} as const
