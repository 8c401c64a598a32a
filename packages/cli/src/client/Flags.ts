/** Flags of every command that calls the API. */
import { Flag } from "effect/cli"

export const apiFlag = Flag.String("api").pipe(
  Flag.withDescription("Address of the API (else SVC_API_URL, the stored login, http://localhost:8080)"),
  Flag.optional,
)
