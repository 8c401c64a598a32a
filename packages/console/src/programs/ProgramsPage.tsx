/** Set-up of mail programs: servers, user name, password while it is available, and steps. */
import { identityPath } from "../router/Paths.ts"
import { useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { call, Unreachable } from "../client/Client.ts"
import { useUncached } from "../client/Uncached.ts"
import { type Identity, IdentityFrame } from "../frame/IdentityFrame.tsx"
import { dateTime } from "../texts/Texts.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Code, Copyable } from "../ui/Copy.tsx"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { Skeleton } from "../ui/Loaded.tsx"
import { Facts, Section, Segments } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Secret } from "../ui/Secret.tsx"
import { say } from "./texts.ts"
import "./programs.css"

/**
 * The mail servers from the public autoconfiguration file (`/mail/config-v1.1.xml`), which is available after the password
 * has expired. Read with patterns, because the console creates no markup from text.
 */
interface Server {
  readonly host: string
  readonly port: number
  readonly security: string
}

interface Servers {
  readonly imap: Server
  readonly smtp: Server | undefined
}

const sockets: Readonly<Record<string, string>> = { SSL: "tls", STARTTLS: "starttls", plain: "none" }

const serverIn = (xml: string, element: string): Server | undefined => {
  const block = new RegExp(`<${element}\\b[^>]*>([^]*?)</${element}>`).exec(xml)?.[1] ?? ""
  const word = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(block)?.[1] ?? ""
  const host = word("hostname")
  return host === ""
    ? undefined
    : { host, port: Number(word("port")), security: sockets[word("socketType")] ?? word("socketType") }
}

const configuration = "/mail/config-v1.1.xml"
const readServers = async (signal: AbortSignal): Promise<Servers> => {
  const response = await fetch(configuration, { signal })
  const xml = await response.text()
  const imap = serverIn(xml, "incomingServer")
  if (!response.ok || imap === undefined) throw new Unreachable(`not a response of the service: ${response.status}`)
  return { imap, smtp: serverIn(xml, "outgoingServer") }
}

/** Reads the secrets, which name the servers, and the public file when the secrets are no longer shown. */
const useSetUp = (handle: string) =>
  useUncached(async (signal) => {
    const secrets = await call("GET /api/identities/:handle/identity-key", { params: { handle } }, { signal })
    const { imap, smtp } =
      secrets.imap === undefined ? await readServers(signal) : { imap: secrets.imap, smtp: secrets.smtp }
    return { secrets, imap, smtp }
  })

const securities = ["tls", "starttls", "none"] as const
const securityOf = (security: string) => {
  const known = securities.find((one) => one === security)
  return known === undefined ? security : say(known)
}

interface AccessProps {
  readonly title: string
  readonly server: Server
  readonly user: string
  readonly password: string | undefined
}

const Access = ({ title, server, user, password }: AccessProps) => (
  <div class="box padded stack">
    <h3>{title}</h3>
    <Facts
      facts={[
        [say("host"), <Copyable value={server.host} what={`${title}: ${say("host")}`} />],
        [say("port"), <Copyable value={String(server.port)} what={`${title}: ${say("port")}`} />],
        [say("security"), securityOf(server.security)],
        [say("user"), <Copyable value={user} what={`${title}: ${say("user")}`} />],
        [
          say("password"),
          password === undefined ? (
            <span class="muted">{say("not_shown")}</span>
          ) : (
            <Secret value={password} what={`${title}: ${say("password")}`} />
          ),
        ],
      ]}
    />
  </div>
)

const muttrc = (address: string, imap: Server, smtp: Server | undefined) => {
  const of = ({ security }: Server, name: string) => (security === "tls" ? `${name}s` : name)
  const user = encodeURIComponent(address)
  return [
    `set from = "${address}"`,
    `set folder = "${of(imap, "imap")}://${user}@${imap.host}:${imap.port}/"`,
    `set spoolfile = "+INBOX"`,
    ...(smtp === undefined ? [] : [`set smtp_url = "${of(smtp, "smtp")}://${user}@${smtp.host}:${smtp.port}/"`]),
    // Unencrypted connections are only offered on the same machine.
    ...(imap.security === "none" ? ["set ssl_starttls = no", "set ssl_force_tls = no"] : ["set ssl_force_tls = yes"]),
  ].join("\n")
}

type Program = "thunderbird" | "apple" | "mutt"

interface StepsProps {
  readonly address: string
  readonly imap: Server
  readonly smtp: Server | undefined
}

const Steps = ({ address, imap, smtp }: StepsProps) => {
  const [program, setProgram] = useState<Program>("thunderbird")
  return (
    <Section title={say("steps")}>
      <div>
        <Segments
          label={say("program")}
          value={program}
          options={(["thunderbird", "apple", "mutt"] as const).map((one) => [one, say(one)] as const)}
          onValue={setProgram}
        />
      </div>
      <div class="box padded stack">
        {program === "thunderbird" ? (
          <>
            <ol class="steps-list">
              <li>{say("thunderbird_1", { address })}</li>
              <li>{say("thunderbird_2")}</li>
              <li>{say("thunderbird_3")}</li>
            </ol>
            <div class="bar">
              <ButtonLink href={configuration} download="config-v1.1.xml">
                {say("autoconfig")}
              </ButtonLink>
            </div>
          </>
        ) : program === "apple" ? (
          <>
            <ol class="steps-list">
              <li>{say("apple_1")}</li>
              <li>{say("apple_2")}</li>
              <li>{say("apple_3")}</li>
            </ol>
            <div class="bar">
              <ButtonLink
                href={`/mail/apple.mobileconfig?address=${encodeURIComponent(address)}`}
                download="mail.mobileconfig"
              >
                {say("profile")}
              </ButtonLink>
            </div>
          </>
        ) : (
          <>
            <p>{say("mutt_1")}</p>
            <Code text={muttrc(address, imap, smtp)} what={say("muttrc")} wrap />
          </>
        )}
      </div>
    </Section>
  )
}

const Renewal = ({ identity, onDone }: { readonly identity: Identity; readonly onDone: () => void }) => {
  const renew = useCommand(async (key) => {
    await call("POST /api/identities/:handle/identity-key/rotate", { params: { handle: identity.handle } }, { key })
    onDone()
  })
  return (
    <ConfirmButton kind="danger" doing={say("renew")} command={renew} disabled={identity.status !== "ready"}>
      <p>{say("renew_why")}</p>
    </ConfirmButton>
  )
}

const Programs = ({ identity }: { readonly identity: Identity }) => {
  const { handle, email } = identity
  const { data, error, refetch } = useSetUp(handle)
  if (error !== null) return <ProblemNote failure={error} onRetry={refetch} />
  if (data === undefined) return <Skeleton lines={6} />
  const { secrets, imap, smtp } = data
  return (
    <div class="stack-loose">
      <Section
        title={say("title")}
        lead={say("lead")}
        actions={secrets.imap === undefined ? <Renewal identity={identity} onDone={refetch} /> : undefined}
      >
        {secrets.imap === undefined || secrets.expires_at === undefined ? null : (
          <p class="muted small">
            {say("waiting", { until: dateTime(new Date(secrets.expires_at)) })}{" "}
            <a href={`/console${identityPath(handle)}`}>{say("to_overview")}</a>
          </p>
        )}
        <div class="access">
          <Access
            title={say("incoming")}
            server={imap}
            user={secrets.imap?.username ?? email}
            password={secrets.imap?.password}
          />
          {smtp === undefined ? (
            <div class="box padded stack">
              <h3>{say("outgoing")}</h3>
              <p class="muted">{say("not_here")}</p>
            </div>
          ) : (
            <Access
              title={say("outgoing")}
              server={smtp}
              user={secrets.smtp?.username ?? email}
              password={secrets.smtp?.password ?? secrets.imap?.password}
            />
          )}
        </div>
      </Section>
      <Steps address={email} imap={imap} smtp={smtp} />
    </div>
  )
}

const ProgramsPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="mail">
    {(identity) => <Programs key={identity.handle} identity={identity} />}
  </IdentityFrame>
)

export default ProgramsPage
