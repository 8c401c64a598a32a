/** The platforms of an Identity, with one pause for all. */
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { changing, useCall } from "../client/Queries.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Note, Section } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import {
  type Connector,
  connectorsOf,
  ConnectorStatus,
  type Platform,
  platforms,
  standing,
  aboutOf,
  titleOf,
} from "./Platforms.tsx"
import { say } from "./texts.ts"
import "./connectors.css"

interface PauseAllProps {
  readonly handle: string
  readonly paused: boolean
  readonly hasAny: boolean
}

const PauseAll = ({ handle, paused, hasAny }: PauseAllProps) => {
  const command = useCommand(() =>
    changing(
      standing,
      { params: { handle } },
      (before) => ({ ...before, paused: !paused }),
      () => call("PATCH /api/identities/:handle/connectors", { params: { handle }, body: { paused: !paused } }),
    ),
  )
  return (
    <>
      {hasAny || paused ? (
        <Button icon={paused ? "play" : "stop"} command={command}>
          {say(paused ? "resume_all" : "pause_all")}
        </Button>
      ) : null}
      <ProblemNote failure={command.failure} />
    </>
  )
}

interface LineProps {
  readonly handle: string
  readonly platform: Platform
  readonly connector: Connector | undefined
}

const Line = ({ handle, platform, connector }: LineProps) => {
  const at = `/console${connectorsOf(handle)}/${platform}`
  return (
    <li class="connector" data-platform={platform}>
      <span class="sign" data-platform={platform} aria-hidden="true">
        {platform.charAt(0)}
      </span>
      <div class="grow">
        <span class="bar">
          {connector === undefined ? (
            <strong>{titleOf(platform)}</strong>
          ) : (
            <a class="whole" href={at}>
              <strong>{titleOf(platform)}</strong>
            </a>
          )}
          <ConnectorStatus status={connector?.status} />
        </span>
        {connector === undefined ? (
          <p class="muted small">{aboutOf(platform)}</p>
        ) : (
          <p class="muted small">
            <bdi class="mono">{connector.account}</bdi>
            {connector.polled_at === null ? null : (
              <>
                {" · "}
                {say("polled")} <Time at={connector.polled_at} />
              </>
            )}
          </p>
        )}
        {connector?.last_error == null ? null : <p class="small wrong-text">{connector.last_error}</p>}
      </div>
      {connector === undefined || connector.status === "stopped" ? (
        <span class="above">
          <ButtonLink
            aria-label={say("connect_to", { platform: titleOf(platform) })}
            href={`${at}/connect${connector === undefined ? "" : `?account=${encodeURIComponent(connector.account)}`}`}
          >
            {say(connector === undefined ? "connect" : "connect_again")}
          </ButtonLink>
        </span>
      ) : null}
    </li>
  )
}

const ConnectorsPage = ({ handle }: { readonly handle: string }) => {
  const connectors = useCall(standing, { params: { handle } }, { every: () => 30_000 })
  return (
    <IdentityFrame handle={handle} part="connectors">
      {(identity) => (
        <Loaded of={connectors}>
          {({ connectors, paused }) => (
            <Section
              title={say("title")}
              lead={say("lead")}
              actions={<PauseAll handle={identity.handle} paused={paused} hasAny={connectors.length > 0} />}
            >
              {paused ? <Note tone="warn">{say("all_paused")}</Note> : null}
              <ul class="box rows connectors" data-list>
                {platforms.map((platform) => (
                  <Line
                    key={platform}
                    handle={identity.handle}
                    platform={platform}
                    connector={connectors.find((one) => one.platform === platform)}
                  />
                ))}
              </ul>
            </Section>
          )}
        </Loaded>
      )}
    </IdentityFrame>
  )
}

export default ConnectorsPage
