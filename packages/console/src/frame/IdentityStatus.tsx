import type { Answer } from "../client/Client.ts"
import { Status, type Tone } from "../ui/Page.tsx"
import { say } from "./texts.ts"

type Identity = Answer<"GET /api/identities/:handle">

const tones: { readonly [S in Identity["status"]]: Tone } = {
  ready: "ok",
  provisioning: "busy",
  failed: "bad",
  deleting: "busy",
}

export const IdentityStatus = ({ status }: Pick<Identity, "status">) => (
  <Status tone={tones[status]}>{say(status)}</Status>
)

export const TunnelStatus = ({ connected }: { readonly connected: boolean }) => (
  <Status tone={connected ? "ok" : "off"}>{say(connected ? "connected" : "disconnected")}</Status>
)
