/** The public address of an agent's local port: whether it is open, what goes through it, and who may come. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { TunnelStatus } from "../frame/IdentityStatus.tsx"
import { bytes, number } from "../texts/Texts.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Code, Copyable } from "../ui/Copy.tsx"
import { Check, Form, Select, TextArea, TextField, wrongAt } from "../ui/Field.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Facts, Section } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

type Tunnel = Answer<"GET /api/identities/:handle/tunnel">

interface OfTunnel {
  readonly handle: string
  readonly tunnel: Tunnel
}

const State = ({ handle, tunnel }: OfTunnel) => (
  <Section title={say("state")} actions={<TunnelStatus connected={tunnel.connected} />}>
    <div class="box padded stack">
      <Facts
        facts={[
          [
            say("url"),
            <span class="bar">
              <Copyable value={tunnel.url} what={say("url")} />
              {tunnel.connected ? (
                <ButtonLink small icon="out" href={tunnel.url} target="_blank" rel="noopener noreferrer">
                  {say("open")}
                </ButtonLink>
              ) : null}
            </span>,
          ],
          tunnel.port !== null && [
            say("tcp"),
            <Copyable value={`${tunnel.hostname}:${tunnel.port}`} what={say("tcp")} />,
          ],
        ]}
      />
      {tunnel.connected ? null : (
        <>
          <p class="muted">{say("connect_why")}</p>
          <Code
            what={say("command")}
            wrap
            text={`SVC_API_URL=${location.origin} SVC_KEY=$SVC_KEY npm run -s svc -- tunnel 3000 --handle ${handle}`}
          />
        </>
      )}
    </div>
    {tunnel.links.length === 0 ? null : (
      <div class="table" tabIndex={0} role="region" aria-label={say("links")}>
        <table aria-label={say("links")}>
          <thead>
            <tr>
              <th>{say("link")}</th>
              <th>{say("edge")}</th>
              <th class="end">{say("since")}</th>
            </tr>
          </thead>
          <tbody>
            {tunnel.links.map(({ edge, since, client }) => (
              <tr key={`${edge}${since}`}>
                <td class="mono">
                  <bdi>{client}</bdi>
                </td>
                <td class="mono muted">{edge}</td>
                <td class="end">
                  <Time at={since} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Section>
)

const Usage = ({ tunnel: { usage } }: { readonly tunnel: Tunnel }) => (
  <Section title={say("usage")}>
    <div class="box padded">
      <Facts
        facts={[
          [say("in"), bytes(usage.bytes_in)],
          [say("out"), bytes(usage.bytes_out)],
          [say("requests"), number(usage.requests)],
          [say("usage_since"), <Time at={usage.since} />],
        ]}
      />
    </div>
  </Section>
)

const Settings = ({ handle, tunnel: { settings } }: OfTunnel) => {
  const [hostHeader, setHostHeader] = useState(settings.host_header)
  const [tls, setTls] = useState(settings.tls)
  const [networks, setNetworks] = useState(settings.allowed_networks.join("\n"))
  const [locked, setLocked] = useState(settings.basic_auth !== null)
  const [user, setUser] = useState(settings.basic_auth?.username ?? "")
  const [password, setPassword] = useState("")
  const [proxy, setProxy] = useState(settings.proxy_protocol)
  const isKept = settings.basic_auth !== null && settings.basic_auth.username === user
  const save = useAct(async () => {
    const auth = !locked
      ? { basic_auth: null }
      : password === "" && isKept
        ? {}
        : { basic_auth: { username: user, password } }
    await call("PATCH /api/identities/:handle/tunnel", {
      params: { handle },
      body: {
        host_header: hostHeader.trim(),
        tls,
        allowed_networks: networks.split(/[\s,]+/).filter((line) => line !== ""),
        proxy_protocol: proxy,
        ...auth,
      },
    })
    setPassword("")
    tell(say("saved"))
    await outdated(["/api/identities/:handle/tunnel"], handle)
  })
  return (
    <Section title={say("settings")}>
      <Form onDone={() => void save.run()}>
        <TextField
          label={say("host_header")}
          hint={say("host_header_hint")}
          required
          spellcheck={false}
          value={hostHeader}
          onValue={setHostHeader}
          wrong={wrongAt(save.failure, "/host_header")}
        />
        <Select label={say("tls")} value={tls} onValue={(value) => setTls(value as typeof tls)}>
          <option value="terminate">{say("terminate")}</option>
          <option value="passthrough">{say("passthrough")}</option>
        </Select>
        <TextArea
          label={say("networks")}
          hint={say("networks_hint")}
          rows={3}
          spellcheck={false}
          value={networks}
          onValue={setNetworks}
          wrong={wrongAt(save.failure, "/allowed_networks")}
        />
        <Check checked={locked} onValue={setLocked}>
          {say("password")}
        </Check>
        {locked ? (
          <>
            <TextField
              label={say("user")}
              required
              value={user}
              onValue={setUser}
              wrong={wrongAt(save.failure, "/basic_auth/username")}
            />
            <TextField
              label={say("secret")}
              type="password"
              autocomplete="new-password"
              required={!isKept}
              value={password}
              onValue={setPassword}
              wrong={wrongAt(save.failure, "/basic_auth/password")}
              {...(isKept ? { hint: say("secret_kept") } : {})}
            />
          </>
        ) : null}
        <Check checked={proxy} onValue={setProxy}>
          {say("proxy")}
        </Check>
        <ProblemNote failure={save.failure} />
        <div class="actions">
          <Button type="submit" kind="primary" busy={save.busy}>
            {say("save")}
          </Button>
        </div>
      </Form>
    </Section>
  )
}

const TunnelPage = ({ handle }: { readonly handle: string }) => {
  const tunnel = useCall(
    "GET /api/identities/:handle/tunnel",
    { params: { handle } },
    // Edges count as it flows; who looks sees it grow.
    { every: (known) => (known?.connected === true ? 5000 : false) },
  )
  return (
    <IdentityFrame handle={handle} part="tunnel">
      {({ handle }) => (
        <Loaded of={tunnel}>
          {(tunnel) => (
            <div class="stack-loose">
              <State handle={handle} tunnel={tunnel} />
              <Usage tunnel={tunnel} />
              <Settings key={JSON.stringify(tunnel.settings)} handle={handle} tunnel={tunnel} />
            </div>
          )}
        </Loaded>
      )}
    </IdentityFrame>
  )
}

export default TunnelPage
