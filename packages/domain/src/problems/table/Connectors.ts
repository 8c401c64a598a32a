/** Accounts at other platforms. */
import { row } from "./Row.ts"

export const connectors = {
  connector_not_connected: row(
    409,
    "fix_call",
    "The Identity is not connected to that platform",
    "There is no Connector of that platform to do it with.",
    "Connect an account: `PUT /api/identities/{handle}/connectors/{platform}` with an app password, or `POST .../authorize`.",
  ),
  connector_capability_unsupported: row(
    422,
    "fix_call",
    "The Connector cannot do that",
    "The platform, or the credential that it was connected with, does not allow it; `capabilities` says what it does.",
    "Do without it, or connect again with a credential that allows it.",
  ),
  connector_option_unknown: row(
    422,
    "fix_call",
    "The platform knows no such option",
    "An option is refused where the platform does not know it, rather than dropped. Nothing was posted.",
    "`errors` names it. Leave it out, or put it under the platform that knows it.",
  ),
  connector_paused: row(
    409,
    "stop",
    "The Connector is paused",
    "Its account holder has paused it; nothing is sent to the platform and nothing is read from it.",
    "The account holder, or an Admin Key, sets `paused` to false.",
  ),
  connector_stopped: row(
    409,
    "stop",
    "The Connector is stopped",
    "The platform refuses its credential, or the profile no longer says that the account is automated.",
    "Connect it again; `last_error` of the Connector says what was wrong.",
  ),
  connector_credential_refused: row(
    422,
    "fix_call",
    "The platform refused the credential",
    "The platform does not take the account with this credential, or the authorization was declined there.",
    "`detail` has the platform's own words. Check the account and its password, or authorize again.",
  ),
  connector_platform_error: row(
    502,
    "wait",
    "The platform did not do it",
    "The platform is out of reach, answered with an error, or refused what was asked.",
    "`detail` has the platform's own words. With `agent_hint` `wait` the same call may succeed later; with `fix_call` it needs another one.",
  ),
  connector_platform_rate_limited: row(
    429,
    "wait",
    "The platform asks for fewer calls",
    "The platform's own limit is reached.",
    "Wait for `retry_after_seconds`, then call again.",
  ),
  connector_state_invalid: row(
    400,
    "stop",
    "The authorization is not known",
    "Its state is unknown, was used before, has expired, or belongs to another Identity.",
    "Begin again with `POST /api/identities/{handle}/connectors/{platform}/authorize`.",
  ),
} as const
