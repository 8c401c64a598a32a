/** General settings: account, language, version of the API, appearance and sessions. */
import { useState } from "preact/hooks"
import { useCommand, useChoice } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { account, look as askAgain, signOut } from "../client/Session.ts"
import { LookChoice } from "../shell/Look.tsx"
import { language, languages, readyTimes, speak, type Language } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { Copyable } from "../ui/Copy.tsx"
import { Confirm } from "../ui/Dialog.tsx"
import { Check, Select } from "../ui/Field.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Facts, Section } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { Frame } from "./Frame.tsx"
import { say } from "./texts.ts"

readyTimes()

/** Each language in its own name. */
const names: Readonly<Record<Language, string>> = { en: "English", de: "Deutsch", fr: "Français" }

const LanguageField = () => {
  const change = useChoice(async (wanted: Language) => {
    const before = language.peek()
    speak(wanted)
    try {
      await call("PATCH /api/account", { body: { language: wanted } })
    } catch (failure) {
      speak(before)
      throw failure
    }
    await askAgain()
  })
  return (
    <>
      <Select
        label={say("language")}
        hint={say("language_hint")}
        value={language.value}
        onValue={(wanted) => void change.run(languages.find((one) => one === wanted) ?? "en")}
      >
        {languages.map((one) => (
          <option key={one} value={one} lang={one}>
            {names[one]}
          </option>
        ))}
      </Select>
      <ProblemNote failure={change.failure} />
    </>
  )
}

const VersionField = () => {
  const { api_version } = account().org
  const versions = useCall("GET /api/versions")
  const change = useChoice(async (wanted: string) => {
    await call("PATCH /api/account", { body: { api_version: wanted } })
    await askAgain()
  })
  return (
    <>
      <Loaded of={versions}>
        {({ newest, versions: known }) => (
          <Select
            label={say("version")}
            hint={say("version_hint")}
            value={api_version}
            onValue={(wanted) => void change.run(wanted)}
          >
            {[...new Set([...known.map(({ version }) => version), api_version])].toReversed().map((version) => (
              <option key={version} value={version}>
                {version === newest ? say("version_newest", { version }) : version}
              </option>
            ))}
          </Select>
        )}
      </Loaded>
      <ProblemNote failure={change.failure} />
    </>
  )
}

// A browser also names those that it descends from: Edge names Chrome and Safari, and Android names Linux.
const browsers = ["Edg", "OPR", "Firefox", "Chrome", "Safari"]
const systems = ["Windows", "Android", "iPhone", "iPad", "Mac OS X", "Linux"]

/** Shortens a user agent: "Firefox · Linux". */
const shortened = (agent: string) => {
  const browser = browsers.find((name) => agent.includes(`${name}/`))
  const system = systems.find((name) => agent.includes(name))
  const called = { Edg: "Edge", OPR: "Opera" }[browser ?? ""] ?? browser
  return called === undefined ? agent.slice(0, 60) : [called, system].filter(Boolean).join(" · ")
}

const EndSession = ({ id, of }: { readonly id: string; readonly of: string }) => {
  const end = useCommand(async () => {
    await call("DELETE /api/auth/sessions/:id", { params: { id } })
    await outdated(["/api/auth/sessions"])
  })
  return (
    <>
      <Button small command={end} aria-label={`${say("end")}: ${of}`}>
        {say("end")}
      </Button>
      <ProblemNote failure={end.failure} />
    </>
  )
}

const Sessions = () => {
  const sessions = useList("GET /api/auth/sessions", { query: { limit: 50 } })
  const [leaving, setLeaving] = useState(false)
  const [endApps, setEndApps] = useState(true)
  const endAll = useCommand(async () => {
    await call("DELETE /api/auth/sessions", { query: { apps: endApps ? "end" : "keep" } })
    await signOut()
  })
  return (
    <Section
      title={say("sessions")}
      lead={say("sessions_lead")}
      actions={
        <Button kind="danger" onClick={() => setLeaving(true)}>
          {say("end_all")}
        </Button>
      }
    >
      <Loaded of={sessions}>
        {({ pages }) => (
          <Table
            label={say("sessions")}
            heads={[say("browser"), say("opened"), say("last_used")]}
            acts={say("actions")}
          >
            {pages
              .flatMap((page) => page.sessions)
              .map(({ id, user_agent, created_at, last_used_at, current }) => (
                <tr key={id}>
                  <td>
                    <bdi title={user_agent ?? ""}>
                      {user_agent === null ? say("unknown_browser") : shortened(user_agent)}
                    </bdi>
                  </td>
                  <td>
                    <Time at={created_at} />
                  </td>
                  <td>
                    <Time at={last_used_at} />
                  </td>
                  <td>
                    {current ? (
                      <span class="tag">{say("this_one")}</span>
                    ) : (
                      <EndSession id={id} of={user_agent === null ? say("unknown_browser") : shortened(user_agent)} />
                    )}
                  </td>
                </tr>
              ))}
          </Table>
        )}
      </Loaded>
      <More of={sessions} />
      {leaving ? (
        <Confirm title={say("end_all")} doing={say("end_all")} command={endAll} onClose={() => setLeaving(false)}>
          <p>{say("end_all_why")}</p>
          <Check checked={endApps} onValue={setEndApps}>
            {say("end_apps")}
          </Check>
        </Confirm>
      ) : null}
    </Section>
  )
}

const SettingsPage = () => {
  const { org } = account()
  return (
    <Frame>
      <Section title={say("account")}>
        <Facts
          facts={[
            [say("email"), <bdi>{org.email}</bdi>],
            [say("since"), <Time at={org.created_at} form="full" />],
            [say("id"), <Copyable value={org.id} what={say("id")} />],
          ]}
        />
      </Section>
      <Section title={say("language")}>
        <LanguageField />
      </Section>
      <Section title={say("api")}>
        <VersionField />
      </Section>
      <Section title={say("look")}>
        <LookChoice />
      </Section>
      <Sessions />
    </Frame>
  )
}

export default SettingsPage
