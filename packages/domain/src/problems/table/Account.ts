/** Problems of sign-up, sign-in, the Terms and account deletion. */
import { row } from "./Row.ts"

export const account = {
  invite_required: row(
    403,
    "stop",
    "An invitation is required to sign up",
    "Sign-up is by invitation only, and the request has no valid `invite_code`.",
    "Ask the operator for an invitation. Existing accounts can sign in without one.",
  ),
  tos_not_accepted: row(
    422,
    "fix_call",
    "The Terms of Service must be accepted",
    "A new account can only be created after the account holder has accepted the Terms.",
    "Show the Terms to the account holder and send `tos_accepted: true`.",
  ),
  tos_version_mismatch: row(
    409,
    "fix_call",
    "This is not the current version of the Terms",
    "The request accepts a version of the Terms that is not in force.",
    "Read `tos.current_version` of the session and accept that version.",
  ),
  magic_link_invalid: row(
    400,
    "stop",
    "The magic link is no longer valid",
    "The token is unknown, has been used already, or has expired.",
    "Request a new link.",
  ),
  authorization_pending: row(
    400,
    "wait",
    "The device login is not yet approved",
    "The account holder has not approved or denied the user code yet.",
    "Poll again after `interval_seconds`.",
  ),
  slow_down: row(
    400,
    "wait",
    "The device login is polled too often",
    "The requests came faster than the polling interval, which is now five seconds longer.",
    "Wait five seconds longer between requests.",
  ),
  device_code_denied: row(
    400,
    "stop",
    "The device login was denied",
    "The account holder denied the user code. No key was created.",
    "Start a new login if the account holder agrees.",
  ),
  device_code_expired: row(
    400,
    "stop",
    "The device code has expired",
    "The login was not approved, or its key was not retrieved, in time.",
    "Start a new login.",
  ),
  device_code_used: row(
    400,
    "stop",
    "The key has already been retrieved",
    "The key of a device login can be retrieved only once.",
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
    "The device login has already been decided",
    "The login was approved or denied before, or has expired. A decision cannot be changed.",
    "Start a new login.",
  ),
  confirmation_mismatch: row(
    400,
    "fix_call",
    "The confirmation does not match",
    "To delete the account, `confirm` must be the account's email address.",
    "Send the account's email address as `confirm`.",
  ),
} as const
