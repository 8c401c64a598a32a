/** Snippets that configure an agent: with its key while that is available, with a placeholder afterwards. */
import { useState } from "preact/hooks"
import { Code } from "../ui/Copy.tsx"
import { Segments } from "../ui/Page.tsx"
import { mask } from "../ui/Secret.tsx"
import type { Identity } from "../frame/IdentityFrame.tsx"
import { say } from "./texts.ts"

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
