/** Approves or denies the device authorization of a terminal. */
import { useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { account } from "../client/Session.ts"
import { query, refine } from "../router/Router.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { TextField } from "../ui/Field.tsx"
import { Form } from "../ui/Form.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Facts, Note, Page } from "../ui/Page.tsx"
import { ProblemNotes } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { DaysSelect, ScopeBoxes } from "./Rights.tsx"
import { say } from "./texts.ts"
import "./keys.css"

type Device = Answer<"GET /api/auth/device/:userCode">

const AskCode = () => {
  const [code, setCode] = useState("")
  return (
    <Page title={say("device")} lead={say("device_lead")}>
      <Form onDone={() => refine({ user_code: code.trim() })}>
        <TextField
          label={say("code")}
          value={code}
          onValue={setCode}
          placeholder="WDJB-MJHT"
          maxLength={20}
          autocapitalize="off"
          spellcheck={false}
          required
          autofocus
        />
        <div class="bar">
          <Button kind="primary" type="submit">
            {say("proceed")}
          </Button>
        </div>
      </Form>
    </Page>
  )
}

const settled = (status: Exclude<Device["status"], "pending">) => (
  <Note tone={status === "approved" || status === "collected" ? "ok" : "warn"}>{say(`status_${status}`)}</Note>
)

const Decision = ({ device }: { readonly device: Device }) => {
  const params = { userCode: device.user_code }
  const reread = () => outdated(["/api/auth/device", "/api/keys"])
  const all = device.scopes.includes("*")
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(device.scopes))
  const [days, setDays] = useState("")
  const approve = useCommand(async (key) => {
    const body = {
      ...(all ? {} : { scopes: [...chosen] }),
      ...(days === "" ? {} : { expires_in_days: Number(days) }),
    }
    await call("POST /api/auth/device/:userCode/approve", { params, body }, { key })
    await reread()
  })
  const deny = useCommand(async (key) => {
    await call("POST /api/auth/device/:userCode/deny", { params }, { key })
    await reread()
  })
  return (
    <div class="stack">
      <p class="device-code mono">{device.user_code}</p>
      <Facts
        facts={[
          [say("key_name"), <bdi>{device.name}</bdi>],
          [say("asked_by"), device.client === null ? say("not_said") : <bdi>{device.client}</bdi>],
          [say("asked_at"), <Time at={device.created_at} />],
          [say("account"), <bdi>{account().org.email}</bdi>],
        ]}
      />
      {device.status === "pending" ? (
        <>
          <Note tone="warn">{say("device_care")}</Note>
          <p class="muted">{say("takes_away")}</p>
          {all ? (
            <Facts facts={[[say("may"), say("may_all")]]} />
          ) : (
            <ScopeBoxes names={device.scopes} chosen={chosen} onChosen={setChosen} />
          )}
          <DaysSelect value={days} onValue={setDays} atMost={device.expires_in_days} />
          <div class="bar">
            <Button command={approve} disabled={chosen.size === 0}>
              {say("approve")}
            </Button>
            <Button command={deny}>{say("deny")}</Button>
          </div>
          <ProblemNotes of={[approve, deny]} />
        </>
      ) : (
        <>
          {settled(device.status)}
          <div class="bar">
            <ButtonLink href="/console/keys">{say("to_keys")}</ButtonLink>
          </div>
        </>
      )}
    </div>
  )
}

const OneDevice = ({ userCode }: { readonly userCode: string }) => {
  const device = useCall("GET /api/auth/device/:userCode", { params: { userCode } })
  const gone = (
    <Empty
      icon="key"
      title={say("no_device")}
      action={<Button onClick={() => refine({ user_code: undefined })}>{say("device")}</Button>}
    >
      {say("no_device_why")}
    </Empty>
  )
  return (
    <Page title={say("device_title")}>
      <Loaded of={device} gone={gone}>
        {/* The scopes chosen for one code are never those of another. */}
        {(found) => <Decision key={found.user_code} device={found} />}
      </Loaded>
    </Page>
  )
}

const DevicesPage = () => {
  const userCode = query.value.get("user_code")
  return userCode === null || userCode === "" ? <AskCode /> : <OneDevice userCode={userCode} />
}

export default DevicesPage
