/** Connects an account by OAuth, or a Bluesky account by an app password. */
import { useState } from "preact/hooks"
import { type Answer, call } from "../client/Client.ts"
import { go, query } from "../router/Router.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Check, TextField } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Section, Segments } from "../ui/Page.tsx"
import { say as common } from "../ui/texts.ts"
import { tell } from "../ui/Toast.tsx"
import { begin } from "./PendingAuthorization.ts"
import { connectorsOf, type Platform, reread, aboutOf, disclosureOf, titleOf, PlatformFrame } from "./Platforms.tsx"
import { say } from "./texts.ts"
import "./connectors.css"

type Start = Answer<"POST /api/identities/:handle/connectors/:platform/authorize">
type Way = "oauth" | "password"

interface OfPlatform {
  readonly handle: string
  readonly platform: Platform
}

interface DisclosureProps {
  readonly platform: Platform
  readonly wanted: boolean
  readonly onWanted: (wanted: boolean) => void
}

const Disclosure = ({ platform, wanted, onWanted }: DisclosureProps) => (
  <div class="field">
    <Check checked={wanted} onValue={onWanted}>
      {say("disclose")}
    </Check>
    <span class="hint">{disclosureOf(platform)}</span>
  </div>
)

const hintOf = (platform: Platform, isPassword: boolean): string | undefined => {
  if (platform === "mastodon") return say("instance_hint")
  if (platform === "bluesky") return say(isPassword ? "bluesky_hint" : "bluesky_hint_oauth")
  return undefined
}

interface RulesProps {
  readonly start: Start
  readonly onGo: () => void
  readonly onBack: () => void
}

/** The rules of the server, shown before the redirect. */
const Rules = ({ start, onGo, onBack }: RulesProps) => {
  const { host } = new URL(start.authorization_url)
  return (
    <Section title={say("rules", { host })} lead={say("rules_lead")}>
      <div class="box padded">
        <ol class="instance-rules">
          {start.instance_rules.map(({ id, text, hint }) => (
            <li key={id}>
              <bdi>{text}</bdi>
              {hint === null ? null : (
                <p class="muted small">
                  <bdi>{hint}</bdi>
                </p>
              )}
            </li>
          ))}
        </ol>
      </div>
      <div class="bar">
        <Button kind="primary" icon="out" onClick={onGo}>
          {say("go_on", { host })}
        </Button>
        <Button onClick={onBack}>{common("cancel")}</Button>
      </div>
    </Section>
  )
}

const Connect = ({ handle, platform }: OfPlatform) => {
  const [start, setStart] = useState<Start>()
  const params = { handle, platform }
  const { values, set, field, command } = useForm(
    { way: "oauth" as Way, account: query.peek().get("account") ?? "", app_password: "", isDisclosed: true },
    async (key, { account, app_password }) => {
      const wanted = account.trim()
      if (isPassword) {
        const body = { account: wanted, app_password: app_password.trim(), apply_disclosure: values.isDisclosed }
        await call("PUT /api/identities/:handle/connectors/:platform", { params, body })
        set({ app_password: "" })
        await reread(handle)
        tell(say("is_connected", { account: wanted }))
        return go(`${connectorsOf(handle)}/${platform}`, "replace")
      }
      const started = await call(
        "POST /api/identities/:handle/connectors/:platform/authorize",
        { params, body: wanted === "" ? {} : { account: wanted } },
        { key },
      )
      if (started.instance_rules.length === 0) leave(started)
      else setStart(started)
    },
    { name: `connect:${handle}:${platform}`, secrets: ["app_password"] },
  )
  const isPassword = platform === "bluesky" && values.way === "password"
  const leave = ({ authorization_url, state }: Start) =>
    begin({ state, handle, platform, apply_disclosure: values.isDisclosed }, authorization_url)
  if (start !== undefined) {
    return <Rules start={start} onGo={() => leave(start)} onBack={() => setStart(undefined)} />
  }
  return (
    <Section title={say("connect_to", { platform: titleOf(platform) })} lead={aboutOf(platform)}>
      <CommandForm
        command={command}
        doing={say("connect")}
        actions={<ButtonLink href={`/console${connectorsOf(handle)}`}>{common("cancel")}</ButtonLink>}
      >
        {platform === "bluesky" ? (
          <div>
            <Segments
              label={say("way")}
              value={values.way}
              options={[
                ["oauth", say("by_oauth")],
                ["password", say("by_password")],
              ]}
              onValue={(way) => set({ way })}
            />
          </div>
        ) : null}
        <TextField
          label={say(platform === "mastodon" ? "instance" : "account")}
          hint={hintOf(platform, isPassword)}
          required={platform === "mastodon" || isPassword}
          autocapitalize="off"
          spellcheck={false}
          {...field("account")}
        />
        {isPassword ? (
          <TextField
            label={say("app_password")}
            hint={say("password_hint")}
            type="password"
            required
            {...field("app_password")}
          />
        ) : null}
        <Disclosure platform={platform} wanted={values.isDisclosed} onWanted={(isDisclosed) => set({ isDisclosed })} />
      </CommandForm>
    </Section>
  )
}

const ConnectPage = ({ handle, platform }: { readonly handle: string; readonly platform: string }) => (
  <PlatformFrame handle={handle} platform={platform}>
    {(owner, known) => <Connect handle={owner} platform={known} />}
  </PlatformFrame>
)

export default ConnectPage
