/** Terminal mail clients, if installed: neomutt with its caches, and aerc. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { send } from "../../harness/Mail.ts"
import { sharedService, type TestService } from "../../harness/Service.ts"
import { makeMailbox, subjects } from "./Mailboxes.ts"
import * as Terminal from "./Terminal.ts"
import { has } from "../../harness/Programs.ts"

let service: TestService
let token: string
beforeAll(async () => {
  service = await sharedService()
  token = (await signUp(service.base)).session
})

type Mailbox = Awaited<ReturnType<typeof makeMailbox>>

const idOf = async (box: Mailbox, subject: string) => (await box.list()).find((one) => one.subject === subject)!.id

/** Subjects of letters in ascending order. */
const letters = (...numbers: ReadonlyArray<number>) => numbers.map((n) => `Letter ${n}`)

describe.skipIf(!has("neomutt", "tmux"))("neomutt", () => {
  const configure = (home: string, { user, pass, address }: Mailbox, more: string) =>
    writeFileSync(
      path.join(home, "rc"),
      [
        `set folder="imap://127.0.0.1:${service.imapPort}/" spoolfile="+INBOX" record="+Sent" postponed="+Drafts"`,
        `set imap_user="${user}" imap_pass="${pass}" smtp_url="smtp://${user}@127.0.0.1:${service.submissionPort}/"`,
        `set smtp_pass="${pass}" smtp_authenticators="plain" from="${address}" realname="Ada" use_envelope_from=yes`,
        "set ssl_starttls=no ssl_force_tls=no quit=yes delete=yes move=no confirmappend=no confirmcreate=no",
        "set wait_key=no mark_old=no pipe_split=no pipe_decode=no sort=mailbox-order sleep_time=0 sidebar_visible=no",
        `set header_cache="${home}/headers/" message_cachedir="${home}/bodies/" tmpdir="${home}"`,
        more,
        "",
      ].join("\n"),
    )

  /** Types into a new neomutt that uses the caches of the previous one, and ends it. */
  const use = async (terminal: Terminal.Terminal, keys: string) => {
    const file = path.join(terminal.home, "keys")
    writeFileSync(file, `push "${keys}<quit>"\n`)
    await terminal.again(`neomutt -n -F ${terminal.home}/rc -e 'source ${file}'`)
    await terminal.ended()
  }
  /** Saves the messages that match a pattern to a file of that name. */
  const list = (home: string, name: string, pattern: string) =>
    `<untag-pattern>~A<enter><tag-pattern>${pattern}<enter><tag-prefix-cond><pipe-message>cat >${home}/${name}<enter><end-cond>`
  const listed = (home: string, name: string) =>
    [...readFileSync(path.join(home, name), "latin1").matchAll(/^Subject: (.*?)\r?$/gm)].map(([, subject]) => subject)

  for (const [kind, settings] of [
    ["as it comes", ""],
    ["with CONDSTORE", "set imap_condstore=yes"],
    ["with QRESYNC", "set imap_condstore=yes imap_qresync=yes"],
  ] as const)
    it(`${kind}: marks, files and removes, and its caches hold after changes made elsewhere`, async () => {
      const box = await makeMailbox(service, token, 10)
      const terminal = await Terminal.make()
      try {
        const { home } = terminal
        for (const name of ["headers", "bodies"]) mkdirSync(path.join(home, name))
        configure(home, box, settings)
        await use(
          terminal,
          [
            "<search>3$<enter><flag-message>",
            "<search>4$<enter><delete-message>",
            "<search>5$<enter><display-message><exit>",
            "<search>6$<enter><save-message>=Kept<enter>",
            list(home, "first", "~A"),
          ].join(""),
        )
        expect(listed(home, "first")).toEqual(letters(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
        const remaining = await box.listed((messages) => messages.length === 9)
        expect(subjects(remaining)).toEqual(letters(0, 1, 2, 3, 5, 6, 7, 8, 9))
        expect(subjects(remaining.filter(({ flagged }) => flagged))).toEqual(["Letter 3"])
        expect(subjects(remaining.filter(({ seen }) => seen))).toContain("Letter 5")
        await box.patch(await idOf(box, "Letter 0"), { seen: true, flagged: true })
        await box.patch(await idOf(box, "Letter 3"), { flagged: false })
        await box.remove(await idOf(box, "Letter 1"))
        await box.remove(await idOf(box, "Letter 8"))
        await send(service.smtpPort, { from: "a@b.example", to: box.address, subject: "Letter 10", text: "new" })
        await box.listed((messages) => messages.length === 8)
        await use(terminal, list(home, "second", "~A") + list(home, "flagged", "~F") + list(home, "read", "~R"))
        expect(listed(home, "second")).toEqual(letters(0, 2, 3, 5, 7, 9, 10))
        expect(listed(home, "flagged")).toEqual(["Letter 0"])
        expect(listed(home, "read")).toContain("Letter 0")
        await use(terminal, "<search>7$<enter><delete-message>" + list(home, "third", "!~D"))
        expect(listed(home, "third")).toEqual(letters(0, 2, 3, 5, 9, 10))
        await use(terminal, `<change-folder>=Kept<enter>${list(home, "kept", "~A")}`)
        expect(listed(home, "kept")).toEqual(["Letter 6"])
        expect(subjects(await box.listed((messages) => messages.length === 7))).toEqual(letters(0, 2, 3, 5, 6, 9, 10))
      } finally {
        await terminal.close()
      }
    })

  it("sends mail, and its copy in Sent is the sent message", async () => {
    const [box, other] = [await makeMailbox(service, token, 0), await makeMailbox(service, token, 0)]
    await box.allow(other.address)
    const terminal = await Terminal.make()
    try {
      configure(terminal.home, box, "set copy=yes")
      writeFileSync(path.join(terminal.home, "text"), "Grüße\n.\nvon Ada\n")
      await terminal.again(
        `sh -c 'neomutt -n -F ${terminal.home}/rc -s Terminal -- ${other.address} <${terminal.home}/text'`,
      )
      await terminal.ended()
      expect(subjects(await other.listed((messages) => messages.length === 1))).toEqual(["Terminal"])
      const client = await ImapClient.login(service.imapPort, box.user, box.pass)
      expect((await client.say("STATUS Sent (MESSAGES)")).untagged).toEqual(["* STATUS Sent (MESSAGES 1)"])
      client.close()
    } finally {
      await terminal.close()
    }
  })
})

describe.skipIf(!has("aerc", "tmux"))("aerc", () => {
  it("shows, flags, moves and removes messages, and sees changes by others", async () => {
    const box = await makeMailbox(service, token, 6)
    const terminal = await Terminal.make()
    try {
      const { home } = terminal
      const folder = path.join(home, ".config", "aerc")
      mkdirSync(folder, { recursive: true })
      const [user, pass] = [box.user, box.pass].map(encodeURIComponent)
      writeFileSync(
        path.join(folder, "accounts.conf"),
        [
          `[box]\nsource = imap+insecure://${user}:${pass}@127.0.0.1:${service.imapPort}`,
          `from = Ada <${box.address}>\ndefault = INBOX\ncache-headers = true\n`,
        ].join("\n"),
        { mode: 0o600 },
      )
      const command = async (text: string) => {
        await terminal.type(":")
        await terminal.type("-l", text)
        await terminal.type("Enter")
      }
      // The newest message is first.
      await terminal.again("aerc")
      await terminal.shows(/Letter 5[^]*Letter 0/)
      await command("select 3")
      await command("flag -x Flagged")
      await command("read")
      await box.listed((messages) => messages.some(({ flagged, seen }) => flagged && seen))
      await command("select 2")
      await command("delete")
      await terminal.shows(/Letter 4\s[^]*Letter 2\s(?![^]*Letter 3)/)
      await command("select 1")
      await command("move Junk")
      await terminal.shows(/Letter 5\s[^]*Letter 2\s(?![^]*Letter 4)/)
      const client = await ImapClient.login(service.imapPort, box.user, box.pass)
      await expect
        .poll(async () => (await client.say("STATUS Junk (MESSAGES)")).untagged, { timeout: 60_000 })
        .toEqual(["* STATUS Junk (MESSAGES 1)"])
      expect(subjects(await box.list())).toEqual(letters(0, 1, 2, 4, 5))
      expect(subjects((await box.list()).filter(({ flagged }) => flagged))).toEqual(["Letter 2"])
      await box.remove(await idOf(box, "Letter 1"))
      await send(service.smtpPort, { from: "a@b.example", to: box.address, subject: "Letter 7", text: "new" })
      await terminal.shows(/^(?![^]*Letter 1)[^]*Letter 7/)
      await command("quit")
      await terminal.ended()
      await box.remove(await idOf(box, "Letter 0"))
      await terminal.again("aerc")
      await terminal.shows(/^(?![^]*Letter [0134])[^]*Letter 7[^]*Letter 5[^]*Letter 2/)
      client.close()
    } finally {
      await terminal.close()
    }
  })
})
