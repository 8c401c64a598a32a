/**
 * The mail servers from the public autoconfiguration file (`/mail/config-v1.1.xml`), which is available after the password
 * has expired. Read with patterns, because the console creates no markup from text.
 */
export interface Server {
  readonly host: string
  readonly port: number
  readonly security: string
}

export interface Servers {
  readonly imap: Server | undefined
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

export const serversOf = (xml: string): Servers => ({
  imap: serverIn(xml, "incomingServer"),
  smtp: serverIn(xml, "outgoingServer"),
})

export const configuration = "/mail/config-v1.1.xml"
export const readServers = async (signal: AbortSignal): Promise<Servers> =>
  serversOf(await (await fetch(configuration, { signal })).text())
