/** Names and descriptions of platforms, with a generic text for platforms without their own. */
import type { Platform } from "./ConnectorStatus.tsx"
import { say } from "./texts.ts"

const own = ["bluesky", "mastodon"] as const
type Own = (typeof own)[number]

const ownOf = (platform: string): Own | undefined => own.find((name) => name === platform)

const capital = (name: string) => name.charAt(0).toUpperCase() + name.slice(1)

export const titleOf = (platform: Platform): string => {
  const name = ownOf(platform)
  return name === undefined ? capital(platform) : say(name)
}

export const aboutOf = (platform: Platform): string => {
  const name = ownOf(platform)
  return name === undefined ? say("about_other", { platform: capital(platform) }) : say(`about_${name}`)
}

export const disclosureOf = (platform: Platform): string => {
  const name = ownOf(platform)
  return name === undefined ? say("disclose_other") : say(`disclose_${name}`)
}
