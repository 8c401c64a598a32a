/** The tunnel of an Identity: connection, usage and settings. */
import { LazyUsage } from "../charts/LazyUsage.tsx"
import { type Answer, call } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { TunnelStatus } from "../frame/IdentityStatus.tsx"
import { bytes, number } from "../texts/Texts.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Code, Copyable } from "../ui/Copy.tsx"
import { Check, Select, TextArea, TextField } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Facts, Section } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
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
      <Table label={say("links")} heads={[say("link"), say("edge"), say("since")]}>
        {tunnel.links.map(({ edge, since, client }) => (
          <tr key={`${edge}${since}`}>
            <td class="mono">
              <bdi>{client}</bdi>
            </td>
            <td class="mono muted">{edge}</td>
            <td>
              <Time at={since} />
            </td>
          </tr>
        ))}
      </Table>
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

const lines = (text: string) => text.split(/[\s,]+/).filter((line) => line !== "")

const Settings = ({ handle, tunnel: { settings } }: OfTunnel) => {
  const { values, set, field, check, command } = useForm(
    {
      host_header: settings.host_header,
      tls: settings.tls,
      networks: settings.allowed_networks.join("\n"),
      callers: typeof settings.callers === "string" ? settings.callers : "listed",
      agents: typeof settings.callers === "string" ? "" : settings.callers.join("\n"),
      isLocked: settings.basic_auth !== null,
      username: settings.basic_auth?.username ?? "",
      password: "",
      proxy_protocol: settings.proxy_protocol,
    },
    async (_, { isLocked, username, password, networks, callers, agents, host_header, tls, proxy_protocol }) => {
      const auth = !isLocked
        ? { basic_auth: null }
        : password === "" && isUserKept
          ? {}
          : { basic_auth: { username, password } }
      await call("PATCH /api/identities/:handle/tunnel", {
        params: { handle },
        body: {
          host_header: host_header.trim(),
          tls,
          allowed_networks: lines(networks),
          callers: callers === "anyone" || callers === "signed" ? callers : lines(agents),
          proxy_protocol,
          ...auth,
        },
      })
      set({ password: "" })
      tell(say("saved"))
      await outdated(["/api/identities/:handle/tunnel"], handle)
    },
    { name: `tunnel:${handle}`, secrets: ["password"] },
  )
  /** The stored password belongs to this user name, so it need not be entered again. */
  const isUserKept = settings.basic_auth?.username === values.username
  return (
    <Section title={say("settings")}>
      <CommandForm command={command} doing={say("save")}>
        <TextField
          label={say("host_header")}
          hint={say("host_header_hint")}
          required
          spellcheck={false}
          {...field("host_header")}
        />
        <Select label={say("tls")} {...field("tls")}>
          <option value="terminate">{say("terminate")}</option>
          <option value="passthrough">{say("passthrough")}</option>
        </Select>
        <TextArea
          label={say("networks")}
          hint={say("networks_hint")}
          rows={3}
          spellcheck={false}
          {...field("networks", "/allowed_networks")}
        />
        <Select label={say("callers")} hint={say("callers_hint")} {...field("callers", "/callers")}>
          <option value="anyone">{say("callers_anyone")}</option>
          <option value="signed">{say("callers_signed")}</option>
          <option value="listed">{say("callers_listed")}</option>
        </Select>
        {values.callers === "listed" ? (
          <TextArea
            label={say("agents")}
            hint={say("agents_hint")}
            rows={3}
            required
            spellcheck={false}
            {...field("agents", "/callers")}
          />
        ) : null}
        <Check {...check("isLocked")}>{say("password")}</Check>
        {values.isLocked ? (
          <>
            <TextField label={say("user")} required {...field("username", "/basic_auth/username")} />
            <TextField
              label={say("secret")}
              type="password"
              autocomplete="new-password"
              required={!isUserKept}
              {...field("password", "/basic_auth/password")}
              {...(isUserKept ? { hint: say("secret_kept") } : {})}
            />
          </>
        ) : null}
        <Check {...check("proxy_protocol")}>{say("proxy")}</Check>
      </CommandForm>
    </Section>
  )
}

const TunnelPage = ({ handle }: { readonly handle: string }) => {
  const tunnel = useCall(
    "GET /api/identities/:handle/tunnel",
    { params: { handle } },
    // Usage grows while the tunnel is connected.
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
              <LazyUsage of="tunnel" handle={handle} />
              <Settings key={JSON.stringify(tunnel.settings)} handle={handle} tunnel={tunnel} />
            </div>
          )}
        </Loaded>
      )}
    </IdentityFrame>
  )
}

export default TunnelPage
