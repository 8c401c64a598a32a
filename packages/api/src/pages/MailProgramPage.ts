/**
 * Automatic configuration of mail clients: Thunderbird's autoconfig file
 * (https://wiki.mozilla.org/Thunderbird:Autoconfiguration:ConfigFileFormat) and a profile for Apple Mail. Both contain only
 * the servers; the user enters the password.
 */
import { createHash } from "node:crypto"
import { Addresses, type MailServer } from "@svc/domain/Addresses"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"

/** The servers for reading and sending. */
interface Servers {
  readonly imap: MailServer
  readonly submission: MailServer
}

const escape = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.codePointAt(0)};`)

const sockets = { tls: "SSL", starttls: "STARTTLS", none: "plain" } as const

const server = (element: string, type: string, { host, port, security }: MailServer) =>
  `    <${element} type="${type}">
      <hostname>${escape(host)}</hostname>
      <port>${port}</port>
      <socketType>${sockets[security]}</socketType>
      <authentication>password-cleartext</authentication>
      <username>%EMAILADDRESS%</username>
    </${element}>`

const autoconfig = (mailDomain: string, { imap, submission }: Servers) => `<?xml version="1.0" encoding="UTF-8"?>
<clientConfig version="1.1">
  <emailProvider id="${escape(mailDomain)}">
    <domain>${escape(mailDomain)}</domain>
    <displayName>${escape(mailDomain)}</displayName>
${server("incomingServer", "imap", imap)}
${server("outgoingServer", "smtp", submission)}
  </emailProvider>
</clientConfig>
`

/** Derives a stable id from the address, so that a new profile replaces the previous one. */
const idOf = (text: string) => {
  const hex = createHash("sha256").update(text).digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

const profile = (
  mailDomain: string,
  address: string,
  { imap, submission }: Servers,
) => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>PayloadContent</key>
  <array>
    <dict>
      <key>EmailAccountDescription</key><string>${escape(address)}</string>
      <key>EmailAccountType</key><string>EmailTypeIMAP</string>
      <key>EmailAddress</key><string>${escape(address)}</string>
      <key>IncomingMailServerAuthentication</key><string>EmailAuthPassword</string>
      <key>IncomingMailServerHostName</key><string>${escape(imap.host)}</string>
      <key>IncomingMailServerPortNumber</key><integer>${imap.port}</integer>
      <key>IncomingMailServerUseSSL</key><${imap.security !== "none"}/>
      <key>IncomingMailServerUsername</key><string>${escape(address)}</string>
      <key>OutgoingMailServerAuthentication</key><string>EmailAuthPassword</string>
      <key>OutgoingMailServerHostName</key><string>${escape(submission.host)}</string>
      <key>OutgoingMailServerPortNumber</key><integer>${submission.port}</integer>
      <key>OutgoingMailServerUseSSL</key><${submission.security !== "none"}/>
      <key>OutgoingMailServerUsername</key><string>${escape(address)}</string>
      <key>OutgoingPasswordSameAsIncomingPassword</key><true/>
      <key>PayloadType</key><string>com.apple.mail.managed</string>
      <key>PayloadIdentifier</key><string>${escape(mailDomain)}.mail</string>
      <key>PayloadUUID</key><string>${idOf(`mail ${address}`)}</string>
      <key>PayloadVersion</key><integer>1</integer>
    </dict>
  </array>
  <key>PayloadDisplayName</key><string>${escape(address)}</string>
  <key>PayloadIdentifier</key><string>${escape(mailDomain)}</string>
  <key>PayloadType</key><string>Configuration</string>
  <key>PayloadUUID</key><string>${idOf(`profile ${address}`)}</string>
  <key>PayloadVersion</key><integer>1</integer>
</dict>
</plist>
`

/** Returns whether the text is an address of this mail domain that is safe in a profile. */
const isOurs = (address: string, mailDomain: string): boolean => {
  const at = address.lastIndexOf("@")
  return (
    /^[a-z0-9-]{1,63}$/i.test(address.slice(0, at)) && address.slice(at + 1).toLowerCase() === mailDomain.toLowerCase()
  )
}

const cached = { "cache-control": "public, max-age=300" }

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const { imap, submission, mailDomain } = yield* Addresses
    const servers = { imap, submission }
    const config = HttpServerResponse.text(autoconfig(mailDomain, servers), {
      contentType: "application/xml",
      headers: cached,
    })
    // Served at `autoconfig.<mail domain>` and at the mail domain itself.
    yield* router.add("GET", "/mail/config-v1.1.xml", Effect.succeed(config))
    yield* router.add("GET", "/.well-known/autoconfig/mail/config-v1.1.xml", Effect.succeed(config))
    yield* router.add(
      "GET",
      "/mail/apple.mobileconfig",
      Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
        const address = new URL(request.url, "http://localhost").searchParams.get("address") ?? ""
        if (!isOurs(address, mailDomain)) {
          return HttpServerResponse.text(`Say whose Mailbox: ?address=name@${mailDomain}\n`, { status: 400 })
        }
        return HttpServerResponse.text(profile(mailDomain, address, servers), {
          contentType: "application/x-apple-aspen-config",
          headers: { ...cached, "content-disposition": `attachment; filename="mail.mobileconfig"` },
        })
      }),
    )
  }),
)
