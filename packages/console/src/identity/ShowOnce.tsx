/**
 * The secrets of a new or rotated Identity, until the account holder confirms that they are stored or they expire, and the
 * snippets that configure an agent.
 */
import { useLayoutEffect, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { guardWhile } from "../router/Router.ts"
import { dateTime } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { Section, Segments } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Secret, mask } from "../ui/Secret.tsx"
import type { Identity } from "../frame/IdentityFrame.tsx"
import { say } from "./texts.ts"
import { Code } from "../ui/Copy.tsx"

export interface MailLogin {
  readonly host: string
  readonly port: number
  readonly security: string
  readonly username: string
  readonly password: string
}

const mailEnv = (name: string, { host, port, security, username, password }: MailLogin) => [
  `${name}_HOST=${host}`,
  `${name}_PORT=${port}`,
  `${name}_SECURITY=${security}`,
  `${name}_USER=${username}`,
  `${name}_PASSWORD=${password}`,
]

const blocks = (identity: Identity, key: string, imap: MailLogin | undefined, smtp: MailLogin | undefined) => {
  const api = location.origin
  return {
    env: [
      `SVC_API_URL=${api}`,
      `SVC_KEY=${key}`,
      `AGENT_HANDLE=${identity.handle}`,
      `AGENT_EMAIL=${identity.email}`,
      ...(imap === undefined ? [] : mailEnv("IMAP", imap)),
      ...(smtp === undefined ? [] : mailEnv("SMTP", smtp)),
    ].join("\n"),
    mcp: JSON.stringify(
      {
        mcpServers: {
          [`agent-${identity.handle}`]: {
            type: "http",
            url: `${api}/api/mcp`,
            headers: { Authorization: `Bearer ${key}` },
          },
        },
      },
      undefined,
      2,
    ),
    curl: `curl -H "Authorization: Bearer ${key}" \\\n  "${api}/api/identities/${identity.handle}/messages?wait=60"`,
    tunnel: `SVC_API_URL=${api} SVC_KEY=${key} npm run -s svc -- tunnel 3000`,
  }
}

type Form = keyof ReturnType<typeof blocks>

interface SetUpProps {
  readonly identity: Identity
  readonly secret?: string | undefined
  readonly imap?: MailLogin | undefined
  readonly smtp?: MailLogin | undefined
}

export const SetUp = ({ identity, secret, imap, smtp }: SetUpProps) => {
  const [form, setForm] = useState<Form>("env")
  const text = blocks(identity, secret ?? "$SVC_KEY", imap, smtp)[form]
  const masked = [secret, imap?.password].reduce<string>(
    (shown, value) => (value === undefined ? shown : shown.replaceAll(value, mask(value))),
    text,
  )
  return (
    <div class="stack">
      <Segments
        label={say("set_up")}
        value={form}
        options={[
          ["env", say("as_env")],
          ["mcp", say("as_mcp")],
          ["curl", say("as_curl")],
          ["tunnel", say("as_tunnel")],
        ]}
        onValue={setForm}
      />
      <Code text={text} shown={masked} what={say(`as_${form}`)} wrap={form !== "mcp"} />
      {secret === undefined ? <p class="muted small">{say("set_up_placeholder", { key: "$SVC_KEY" })}</p> : null}
    </div>
  )
}

type Secrets = Answer<"GET /api/identities/:handle/identity-key">

interface ShowOnceProps {
  readonly identity: Identity
  readonly secrets: Secrets
  readonly forget: () => void
}

export const ShowOnce = ({ identity, secrets, forget }: ShowOnceProps) => {
  const { handle } = identity
  const waits = secrets.identity_key !== undefined || secrets.imap !== undefined
  const command = useCommand(async (key) => {
    await call("POST /api/identities/:handle/identity-key/ack", { params: { handle } }, { key })
    forget()
  })
  // Confirmation in progress needs no warning.
  const asks = waits && !command.busy
  useLayoutEffect(
    () =>
      asks
        ? guardWhile(
            () => true,
            () => say("leave"),
          )
        : undefined,
    [asks],
  )
  return waits ? (
    <Section
      title={say("secrets")}
      lead={
        secrets.expires_at === undefined
          ? undefined
          : say("secrets_why", { until: dateTime(new Date(secrets.expires_at)) })
      }
    >
      <div class="box padded secrets stack">
        {secrets.identity_key === undefined ? null : (
          <div class="stack">
            <h3>{say("identity_key")}</h3>
            <Secret value={secrets.identity_key} what={say("identity_key")} />
          </div>
        )}
        {secrets.imap === undefined ? null : (
          <div class="stack">
            <h3>{say("imap_password")}</h3>
            <Secret value={secrets.imap.password} what={say("imap_password")} />
          </div>
        )}
        <h3>{say("set_up")}</h3>
        <SetUp identity={identity} secret={secrets.identity_key} imap={secrets.imap} smtp={secrets.smtp} />
        <ProblemNote failure={command.failure} />
        <div class="bar">
          <Button kind="primary" icon="check" command={command}>
            {say("stored")}
          </Button>
        </div>
      </div>
    </Section>
  ) : (
    <Section title={say("set_up")} lead={say("set_up_why")}>
      <SetUp identity={identity} />
    </Section>
  )
}
