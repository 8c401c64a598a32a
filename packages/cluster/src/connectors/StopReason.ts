/** Reasons for which a Connector stops, and how to fix them. */
import { boundedWords } from "./platforms/ResponseBounds.ts"
import type { Platform } from "./platforms/Platform.ts"

export interface Reason {
  readonly error: string
  readonly remedy: string
  /** Whether the profile is checked again, because the account holder may fix it there. */
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
