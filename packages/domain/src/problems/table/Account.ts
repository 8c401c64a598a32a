/** Signing up and in, by magic link and by device, the Terms, and the end of an account. */
import { row } from "./Row.ts"

export const account = {
  invite_required: row(
    403,
    "stop",
    "An invitation is needed to sign up",
    "Sign-up is not open to everyone, and the call carried no valid `invite_code`.",
    "Ask the operator for an invitation. Existing accounts sign in without one.",
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
} as const
