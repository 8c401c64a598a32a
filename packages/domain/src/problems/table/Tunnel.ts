/** Problems that an edge returns on behalf of an agent, or to an agent that connects. */
import { row } from "./Row.ts"

export const tunnel = {
  tunnel_agent_offline: row(
    503,
    "wait",
    "The agent is not connected",
    "The tunnel exists, but its agent is not connected at the moment.",
    "Try again in a few seconds. The agent connects with `svc tunnel <port>`.",
  ),
  tunnel_not_found: row(404, "stop", "The tunnel does not exist", "No agent has this name.", "Check the address."),
  tunnel_local_refused: row(
    502,
    "wait",
    "The agent's local server is not reachable",
    "The agent is connected, but nothing listens on the port that it forwards to.",
    "Start the agent's server, or try again later.",
  ),
  tunnel_link_lost: row(
    502,
    "wait",
    "The agent's connection was lost",
    "The connection to the agent was lost before it had responded.",
    "Retry the request if it is safe to repeat.",
  ),
  tunnel_local_timeout: row(
    504,
    "wait",
    "The agent did not respond in time",
    "The request reached the agent, but no response arrived within one minute.",
    "Try again later.",
  ),
  tunnel_transfer_blocked: row(
    429,
    "wait",
    "The transfer limit is used up",
    "The Org has used its transfer allowance for today.",
    "Wait until midnight UTC, when the allowance is renewed.",
  ),
  tunnel_duplicate_edge: row(
    409,
    "fix_call",
    "The agent is already connected to this edge",
    "Each connection of an agent must go to a different edge.",
    "Connect to another edge.",
  ),
  tunnel_client_outdated: row(
    426,
    "fix_call",
    "The tunnel client is too old",
    "The edge does not support this version of the link protocol.",
    "Update the client.",
  ),
} as const
