/** Sessions over a Mailbox in memory without sockets, and a conversation that uses most commands. */
import * as Session from "@svc/mail-gateway/mail/imap/session/Session"
import type { Spools } from "@svc/mail-gateway/mail/imap/session/Spool"
import type { Store } from "@svc/mail-gateway/mail/imap/session/Store"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Exit, Redacted, Scope } from "effect"
import * as MemoryStore from "./MemoryStore.ts"

/** Spools in memory, whose writes fail from `brokenAt` bytes on. */
const spoolsOf = (brokenAt: number): Spools => ({
  room: () => Infinity,
  open: () =>
    Effect.sync(() => {
      const pieces: Array<Buffer> = []
      let size = 0
      return {
        write: (bytes) =>
          Effect.suspend(() => {
            size += bytes.length
            if (size > brokenAt)
              return Effect.fail(new Unavailable({ detail: "full", retry_after_seconds: 1 }) as never)
            return Effect.sync(() => void pieces.push(Buffer.from(bytes)))
          }),
        read: Effect.sync(() => Buffer.concat(pieces)),
        close: Effect.void,
      }
    }),
})

export interface Options {
  readonly secure?: boolean
  readonly allowsPlain?: boolean
  readonly store?: Store
  /** The bytes at which the storage of large messages is full. */
  readonly brokenAt?: number
  /** Replaces the storage of large messages in memory. */
  readonly spools?: Spools
  readonly onLogin?: (user: string | undefined, password: string) => void
}

export const open = async ({
  secure = true,
  allowsPlain = true,
  store = MemoryStore.make(),
  onLogin,
  brokenAt = Infinity,
  spools = spoolsOf(brokenAt),
}: Options = {}) => {
  const scope = Scope.makeUnsafe()
  const output: Array<Buffer> = []
  const session = await Effect.runPromise(
    Scope.provide(
      Session.make(
        {
          messageBytes: 100_000,
          spools,
          allowsPlain,
          run: (effect) => void Effect.runFork(effect),
          send: (bytes) => Effect.sync(() => void output.push(Buffer.from(bytes))),
          login: (user, password) =>
            Effect.sync(() => {
              onLogin?.(user, Redacted.value(password))
              return user === "ada" ? store : { denied: "AUTHENTICATIONFAILED" as const, text: "no", ends: false }
            }),
        },
        secure,
      ),
      scope,
    ),
  )
  return {
    feed: (bytes: Buffer) => Effect.runPromise(session.feed(bytes)),
    said: () => Buffer.concat(output).toString("latin1"),
    pieces: () => output.map(({ length }) => length),
    forget: () => void output.splice(0),
    secured: session.secured,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

export const login = "a LOGIN ada x\r\n"
export const message = [
  "From: A <a@x.example>",
  "Subject: hello",
  "Content-Type: multipart/mixed; boundary=b",
  "",
  "--b",
  "Content-Type: text/plain",
  "",
  "text",
  "--b",
  "Content-Type: application/octet-stream",
  "Content-Transfer-Encoding: base64",
  "",
  "AAECAw==",
  "--b--",
  "",
].join("\r\n")
export const append = (tag: string, folder = "INBOX") =>
  `${tag} APPEND ${folder} (\\Seen) {${message.length}+}\r\n${message}\r\n`

export const fullConversation = [
  "1 CAPABILITY\r\n",
  '2 LOGIN {3+}\r\nada "x y"\r\n',
  append("3"),
  append("4"),
  append("5"),
  "6 SELECT INBOX (CONDSTORE)\r\n",
  "7 FETCH 1:* (FLAGS UID ENVELOPE BODYSTRUCTURE BODY.PEEK[1] BODY[HEADER.FIELDS (SUBJECT)] BINARY.SIZE[2])\r\n",
  "8 UID FETCH 1:2 (BODY.PEEK[2]<2.4> RFC822.SIZE BINARY[2])\r\n",
  "9 STORE 1,3 +FLAGS (\\Deleted $Forwarded)\r\n",
  '10 SEARCH RETURN (MIN MAX ALL) OR KEYWORD $forwarded NOT (SUBJECT "hel\\"lo" 1:2)\r\n',
  "11 UID SEARCH RETURN (SAVE) DELETED\r\n12 UID COPY $ Sent\r\n",
  "13 CREATE a/b (USE (\\Archive))\r\n14 UID MOVE 2 a/b\r\n",
  "15 EXPUNGE\r\n16 STATUS Sent (MESSAGES UIDNEXT SIZE)\r\n",
  '17 LIST (SUBSCRIBED) "" ("*" "%") RETURN (CHILDREN STATUS (MESSAGES))\r\n',
  "18 IDLE\r\nDONE\r\n19 ENABLE QRESYNC IMAP4rev2\r\n20 SELECT Sent (QRESYNC (2 1 1:9))\r\n",
  "21 SORT (SUBJECT REVERSE DATE) UTF-8 ALL\r\n22 THREAD REFERENCES UTF-8 ALL\r\n23 CLOSE\r\n24 LOGOUT\r\n",
].join("")

/** Makes a deterministic random number generator. */
export const random = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296
  return seed / 4_294_967_296
}
