/** What an edge answers in an agent's place, and what it refuses an agent. */
import { row } from "./Row.ts"

export const tunnel = {
  tunnel_agent_offline: row(
    503,
    "wait",
    "The agent is not connected",
    "The name exists, but its agent holds no tunnel at the moment.",
    "Try again in a few seconds. The agent connects with `svc tunnel <port>`.",
  ),
  tunnel_not_found: row(404, "stop", "There is no such tunnel", "No agent has this name.", "Check the address."),
  tunnel_local_refused: row(
    502,
    "wait",
    "The agent's port does not answer",
    "The agent is connected, but nothing listens on the port it forwards to.",
    "Start the agent's server, or try again later.",
  ),
  tunnel_link_lost: row(
    502,
    "wait",
    "The agent's connection was lost",
    "The tunnel broke before the agent had answered.",
    "Repeat the request if that is safe.",
  ),
  tunnel_local_timeout: row(
    504,
    "wait",
    "The agent did not answer in time",
    "The request reached the agent, which sent no byte within a minute.",
    "Try again later.",
  ),
  tunnel_transfer_blocked: row(
    429,
    "wait",
    "The transfer limit is used up",
    "The Org has used its transfer for today.",
    "It is renewed at midnight UTC.",
  ),
  tunnel_duplicate_edge: row(
    409,
    "fix_call",
    "This edge has a link of this agent",
    "An agent's links go to different edges.",
    "Dial another edge.",
  ),
  tunnel_client_outdated: row(
    426,
    "fix_call",
    "The tunnel client is too old",
    "The edge does not speak this version of the link protocol.",
    "Update the client.",
  ),
} as const
