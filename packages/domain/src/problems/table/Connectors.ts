/** Problems of Connectors: accounts on other platforms. */
import { row } from "./Row.ts"

export const connectors = {
  connector_not_connected: row(
    409,
    "fix_call",
    "The Identity is not connected to that platform",
    "The Identity has no Connector for that platform.",
    "Connect an account: `PUT /api/identities/{handle}/connectors/{platform}` with an app password, or `POST .../authorize`.",
  ),
  connector_capability_unsupported: row(
    422,
    "fix_call",
    "The Connector does not support this operation",
    "The platform or the Connector's credential does not allow this operation; `capabilities` lists what is supported.",
    "Connect again with a credential that allows the operation, or do without it.",
  ),
  connector_option_unknown: row(
    422,
    "fix_call",
    "The platform does not support this option",
    "The request has an option that the platform does not support. Nothing was posted.",
    "`errors` names the option. Omit it, or move it to a platform that supports it.",
  ),
  connector_paused: row(
    409,
    "stop",
    "The Connector is paused",
    "The account holder has paused the Connector. Nothing is sent to the platform or read from it.",
    "The account holder or an Admin Key can resume it by setting `paused` to false.",
  ),
  connector_stopped: row(
    409,
    "stop",
    "The Connector is stopped",
    "The platform rejects the Connector's credential, or the profile no longer states that the account is automated.",
    "Read `last_error` of the Connector, correct the cause, and connect again.",
  ),
  connector_credential_refused: row(
    422,
    "fix_call",
    "The platform rejected the credential",
    "The platform does not accept this credential for the account, or the authorization was denied there.",
    "`detail` quotes the platform. Check the account and its password, or authorize again.",
  ),
  connector_platform_error: row(
    502,
    "wait",
    "The platform did not complete the request",
    "The platform is unreachable, returned an error, or rejected the request.",
    "`detail` quotes the platform. If `agent_hint` is `wait`, the same request may succeed later; if it is `fix_call`, change the request.",
  ),
  connector_platform_rate_limited: row(
    429,
    "wait",
    "The platform's rate limit is reached",
    "The platform accepts no more requests for now.",
    "Wait for `retry_after_seconds`, then retry.",
  ),
  connector_state_invalid: row(
    400,
    "stop",
    "The authorization state is invalid",
    "The state of this authorization is unknown, was used before, has expired, or belongs to another Identity.",
    "Start again with `POST /api/identities/{handle}/connectors/{platform}/authorize`.",
  ),
} as const
