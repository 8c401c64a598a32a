/** Flags that all commands with API calls share. */
import { Flag } from "effect/cli"

export const apiFlag = Flag.String("api").pipe(
  Flag.withDescription("Address of the API (default: SVC_API_URL, the stored login, or http://localhost:8080)"),
  Flag.optional,
)

export const handleFlag = Flag.String("handle").pipe(
  Flag.withDescription("The Identity; required unless the credential is its own key"),
  Flag.optional,
)
