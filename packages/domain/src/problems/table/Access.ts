/** What the judgement of a call's credential and of its endpoint's policy can come to. */
import { row } from "./Row.ts"

export const access = {
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
} as const
