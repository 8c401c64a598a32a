/** Mailboxes with mail for testing clients, and their state in the API. */
import { call, makeIdentity } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { eventually, type TestService } from "../../harness/Service.ts"

export interface ListedMessage {
  readonly id: string
  readonly subject: string
  readonly seen: boolean
  readonly flagged: boolean
  readonly labels: ReadonlyArray<string>
}

const letter = (n: number) =>
  [
    `From: =?utf-8?q?Grace_H=C3=B6pper?= <grace@example.org>`,
    `Message-ID: <letter-${n}@example.org>`,
    `Date: Mon, 01 Jan 2024 00:00:${String(n % 60).padStart(2, "0")} +0000`,
    `Subject: Letter ${n}`,
    "Content-Type: text/plain; charset=utf-8",
    "",
    `Zahl ${n}`,
    "",
  ].join("\r\n")

/** Creates an Identity whose INBOX contains `count` unread letters with the subjects `Letter 0` and up. */
export const makeMailbox = async (service: TestService, token: string, letters: number) => {
  const { secrets, handle } = await makeIdentity(service.base, token)
  const user = secrets.imap.username as string
  const pass = secrets.imap.password as string
  const client = await ImapClient.login(service.imapPort, user, pass)
  for (let n = 0; n < letters; n++) await client.append("INBOX", letter(n))
  await client.say("LOGOUT")
  client.close()
  const at = `/api/identities/${handle}`
  const list = async (): Promise<ReadonlyArray<ListedMessage>> =>
    (await call(service.base, "GET", `${at}/messages?limit=100`, { token })).body.messages
  return {
    handle,
    address: `${handle}@mail.localhost`,
    user,
    pass,
    secrets,
    list,
    /** Waits until the messages in the API match, and returns them. */
    listed: (holds: (messages: ReadonlyArray<ListedMessage>) => boolean) => eventually(list, holds),
    patch: (id: string, body: object) => call(service.base, "PATCH", `${at}/messages/${id}`, { token, body }),
    remove: (id: string) => call(service.base, "DELETE", `${at}/messages/${id}`, { token }),
    allow: (address: string) => call(service.base, "POST", `${at}/allowed-recipients`, { token, body: { address } }),
  }
}

/** Returns the subjects in order. */
export const subjects = (messages: ReadonlyArray<ListedMessage>) =>
  messages.map(({ subject }) => subject).sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
