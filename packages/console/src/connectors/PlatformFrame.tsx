/** The frame of a page about one platform. */
import type { JSX } from "preact"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { Empty } from "../ui/Page.tsx"
import { type Platform, platforms } from "./ConnectorStatus.tsx"
import { say } from "./texts.ts"

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
