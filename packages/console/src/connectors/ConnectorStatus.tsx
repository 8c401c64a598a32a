import { identityPath } from "../router/Paths.ts"
import { platformNames } from "@svc/domain/connectors/PlatformNames"
import type { Answer } from "../client/Client.ts"
import { Status, type Tone } from "../ui/Page.tsx"
import { say } from "./texts.ts"

export type Connector = Answer<"GET /api/identities/:handle/connectors/:platform">
export type Platform = Connector["platform"]

/** Platforms in display order. */
export const platforms: ReadonlyArray<Platform> = platformNames

export const connectorsOf = (handle: string) => `${identityPath(handle)}/connectors`

const tones: { readonly [S in Connector["status"]]: Tone } = { connected: "ok", paused: "warn", stopped: "bad" }

export const ConnectorStatus = ({ status }: { readonly status: Connector["status"] | undefined }) => (
  <Status tone={status === undefined ? "off" : tones[status]}>{say(status ?? "none")}</Status>
)
