/** Why a Connector stops, and what has it back. */
import { boundedWords } from "./platforms/ResponseBounds.ts"
import type { Platform } from "./platforms/Platform.ts"

export interface Reason {
  readonly error: string
  readonly remedy: string
  /** The profile is looked at again: it may be put right there. */
  readonly recheck: boolean
}

const reconnect = (name: string) =>
  `Connect the account again: PUT /api/identities/{handle}/connectors/${name} or POST .../${name}/authorize.`

export const credentialRefused = ({ name, title }: Pick<Platform, "name" | "title">, message: string): Reason => ({
  error: `${title}: ${boundedWords(message)}`,
  remedy: reconnect(name),
  recheck: false,
})

export const undeclared = ({ name, title }: Pick<Platform, "name" | "title">): Reason => ({
  error: `The profile at ${title} no longer says that the account is automated.`,
  remedy: `Mark the account as automated in its profile, which is looked at every hour. Or: ${reconnect(name)} With apply_disclosure it is marked for you.`,
  recheck: true,
})
