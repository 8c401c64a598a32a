/** The refusal of a write to an Identity that is not ready. A caller waits only while the Identity is provisioned. */
import { IdentityNotReady } from "../problems/Problem.ts"

export const notReady = (status: string): IdentityNotReady =>
  new IdentityNotReady({
    detail: `The Identity is ${status}.`,
    agent_hint: status === "provisioning" ? "wait" : "stop",
  })
