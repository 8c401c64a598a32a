/** The platforms of connectors: names and descriptions, the status badge, and the frame of their pages. */
import { identityPath } from "../router/Paths.ts"
import { platformNames } from "@svc/domain/connectors/PlatformNames"
import type { Answer } from "../client/Client.ts"
import { Status, type Tone, Empty } from "../ui/Page.tsx"
import { say } from "./texts.ts"
import { client, keyOf } from "../client/Queries.ts"
import type { JSX } from "preact"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"

interface PlatformFrameProps {
  readonly handle: string
  readonly platform: string
  readonly children: (handle: string, platform: Platform) => JSX.Element
}

export const PlatformFrame = ({ handle, platform, children }: PlatformFrameProps) => {
  const known = platforms.find((one) => one === platform)
  return (
    <IdentityFrame handle={handle} part="connectors">
      {(identity) =>
        known === undefined ? <Empty icon="connector" title={say("none")} /> : children(identity.handle, known)
      }
    </IdentityFrame>
  )
}

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

export const standing = "GET /api/identities/:handle/connectors"

export const reread = (handle: string) =>
  client.invalidateQueries({ queryKey: keyOf(standing, { params: { handle } }), exact: true })

export type Connector = Answer<"GET /api/identities/:handle/connectors/:platform">
export type Platform = Connector["platform"]

/** Platforms in display order. */
export const platforms: ReadonlyArray<Platform> = platformNames

export const connectorsOf = (handle: string) => `${identityPath(handle)}/connectors`

const tones: { readonly [S in Connector["status"]]: Tone } = { connected: "ok", paused: "warn", stopped: "bad" }

export const ConnectorStatus = ({ status }: { readonly status: Connector["status"] | undefined }) => (
  <Status tone={status === undefined ? "off" : tones[status]}>{say(status ?? "none")}</Status>
)
