/** A connected account: its status, pausing and disconnecting, its posts and its notifications. */
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { go, query, refine } from "../router/Router.ts"
import { list, readyTimes } from "../texts/Texts.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { TextArea } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Facts, Note, Section, Segments, Status } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import {
  type Connector,
  connectorsOf,
  ConnectorStatus,
  reread,
  standing,
  aboutOf,
  titleOf,
  PlatformFrame,
} from "./Platforms.tsx"
import { Said, type View } from "./Posts.tsx"
import { say } from "./texts.ts"
import "./connectors.css"

readyTimes()

interface OfConnector {
  readonly handle: string
  readonly connector: Connector
}

/** Explains why the connector is inactive and how to resume it. */
const WayBack = ({ handle, connector, isAll }: OfConnector & { readonly isAll: boolean }) => {
  const { status, platform, account, disclosed, last_error } = connector
  if (status === "connected") return null
  if (status === "paused") return <Note tone="warn">{say(isAll ? "all_paused" : "one_paused")}</Note>
  // The connector stops if the AI disclosure was removed or the credential was rejected.
  const isUndeclared = !disclosed && /no longer says that the account is automated/.test(last_error ?? "")
  return (
    <Note tone="bad">
      <strong>{say("stopped")}</strong>
      <p>{say(isUndeclared ? "stopped_profile" : "stopped_credential")}</p>
      <div class="bar">
        <ButtonLink
          kind="primary"
          href={`/console${connectorsOf(handle)}/${platform}/connect?account=${encodeURIComponent(account)}`}
        >
          {say("connect_again")}
        </ButtonLink>
      </div>
    </Note>
  )
}

const Standing = ({ connector }: { readonly connector: Connector }) => (
  <div class="box padded">
    <Facts
      facts={[
        [say("account"), <bdi class="mono">{connector.account}</bdi>],
        [say("server"), <bdi>{connector.service}</bdi>],
        [say("via"), say(connector.connected_via)],
        [say("can"), list(connector.capabilities.map((capability) => say(`can_${capability}`)))],
        [
          say("disclosure"),
          <Status tone={connector.disclosed ? "ok" : "off"}>
            {say(connector.disclosed ? "disclosed" : "undisclosed")}
          </Status>,
        ],
        [say("polled"), connector.polled_at === null ? say("never") : <Time at={connector.polled_at} />],
        connector.last_error !== null && [say("last_error"), <bdi class="wrong-text">{connector.last_error}</bdi>],
        [say("since"), <Time at={connector.created_at} form="full" />],
      ]}
    />
  </div>
)

const Switches = ({ handle, connector, isAll }: OfConnector & { readonly isAll: boolean }) => {
  const params = { handle, platform: connector.platform }
  const pause = useCommand(async () => {
    await call("PATCH /api/identities/:handle/connectors/:platform", { params, body: { paused: !connector.paused } })
    await reread(handle)
  })
  const remove = useCommand(async () => {
    await call("DELETE /api/identities/:handle/connectors/:platform", { params })
    tell(say("disconnected"))
    go(connectorsOf(handle), "replace")
    await reread(handle)
  })
  return (
    <>
      {connector.status === "stopped" || isAll ? null : (
        <Button icon={connector.paused ? "play" : "stop"} command={pause}>
          {say(connector.paused ? "resume" : "pause")}
        </Button>
      )}
      <ConfirmButton kind="danger" doing={say("disconnect")} command={remove}>
        <p>
          <bdi class="mono">{connector.account}</bdi>
        </p>
        <p>{say("disconnect_why")}</p>
      </ConfirmButton>
      <ProblemNote failure={pause.failure} />
    </>
  )
}

const NewPost = ({ handle, connector }: OfConnector) => {
  const params = { handle, platform: connector.platform }
  const { set, field, command } = useForm(
    { text: "" },
    async (key, body) => {
      await call("POST /api/identities/:handle/connectors/:platform/posts", { params, body }, { key })
      set({ text: "" })
      tell(say("posted"))
      await outdated(["/api/identities/:handle/connectors/:platform/posts"], handle)
    },
    { name: `post:${handle}:${connector.platform}`, secrets: [] },
  )
  return (
    <CommandForm command={command} doing={say("post")} kind="normal" icon="send">
      <TextArea
        label={say("say_something")}
        hint={say("public_at_once", { account: connector.account })}
        rows={3}
        required
        {...field("text")}
      />
    </CommandForm>
  )
}

const Words = ({ handle, connector }: OfConnector) => {
  const { capabilities, platform } = connector
  const views: ReadonlyArray<readonly [View, string]> = [
    ["posts", say("posts")],
    ...(capabilities.includes("notifications") ? [["heard", say("heard")] as const] : []),
    ...(capabilities.includes("dm") ? [["dms", say("dms")] as const] : []),
  ]
  const view = views.find(([one]) => one === query.value.get("view"))?.[0] ?? "posts"
  return (
    <div class="stack">
      <div>
        <Segments
          label={say("view")}
          value={view}
          options={views}
          onValue={(wanted) => refine({ view: wanted === "posts" ? undefined : wanted })}
        />
      </div>
      {view === "posts" && capabilities.includes("post") ? <NewPost handle={handle} connector={connector} /> : null}
      <Said key={view} view={view} handle={handle} platform={platform} />
    </div>
  )
}

const Account = ({ handle, platform }: { readonly handle: string; readonly platform: Connector["platform"] }) => {
  const connectors = useCall(
    standing,
    { params: { handle } },
    // The service polls every 30 seconds while there is activity.
    { every: () => 30_000 },
  )
  return (
    <Loaded of={connectors}>
      {({ connectors, paused }) => {
        const connector = connectors.find((one) => one.platform === platform)
        if (connector === undefined) {
          return (
            <Empty
              icon="connector"
              title={say("none")}
              action={
                <ButtonLink kind="primary" href={`/console${connectorsOf(handle)}/${platform}/connect`}>
                  {say("connect_to", { platform: titleOf(platform) })}
                </ButtonLink>
              }
            >
              {aboutOf(platform)}
            </Empty>
          )
        }
        return (
          <div class="stack-loose">
            <Section
              title={titleOf(platform)}
              actions={
                <>
                  <ConnectorStatus status={connector.status} />
                  <Switches handle={handle} connector={connector} isAll={paused} />
                </>
              }
            >
              <WayBack handle={handle} connector={connector} isAll={paused} />
              <Standing connector={connector} />
            </Section>
            {connector.status === "connected" ? <Words handle={handle} connector={connector} /> : null}
          </div>
        )
      }}
    </Loaded>
  )
}

const ConnectorPage = ({ handle, platform }: { readonly handle: string; readonly platform: string }) => (
  <PlatformFrame handle={handle} platform={platform}>
    {(owner, known) => <Account handle={owner} platform={known} />}
  </PlatformFrame>
)

export default ConnectorPage
