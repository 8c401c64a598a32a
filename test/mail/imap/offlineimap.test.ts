/** offlineimap, if installed: it synchronizes a Maildir with a Mailbox, despite interruptions. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer, type Socket } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { signUp } from "../../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../../harness/Service.ts"
import { makeMailbox, subjects } from "./Mailboxes.ts"
import { has } from "../../harness/Programs.ts"

let service: TestService
let token: string

/** A proxy to a port that breaks the connection once after a number of bytes. */
const breaking = async (port: number, after: number) => {
  let remaining = after
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1")
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on("error", () => {})
      socket.on("close", () => {
        near.destroy()
        far.destroy()
      })
    }
    far.pipe(near)
    near.on("data", (bytes: Buffer) => {
      if (remaining <= 0 || bytes.length < remaining) far.write(bytes)
      else far.write(bytes.subarray(0, remaining), () => near.destroy())
      remaining -= bytes.length
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as { readonly port: number }).port,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const makePlace = ({ user, pass }: { readonly user: string; readonly pass: string }) => {
  const home = mkdtempSync(path.join(os.tmpdir(), "svc-offlineimap-"))
  const inbox = path.join(home, "mail", "INBOX")
  mkdirSync(path.join(home, "mail"))
  const start = (port = service.imapPort) => {
    const config = path.join(home, `rc-${port}`)
    writeFileSync(
      config,
      [
        `[general]\naccounts = a\nmetadata = ${home}/state\nui = basic\nsocktimeout = 60\n`,
        "[Account a]\nlocalrepository = l\nremoterepository = r\n",
        `[Repository l]\ntype = Maildir\nlocalfolders = ${home}/mail\n`,
        `[Repository r]\ntype = IMAP\nremotehost = 127.0.0.1\nremoteport = ${port}\nremoteuser = ${user}\nremotepass = ${pass}\n`,
        "ssl = no\nstarttls = no\nauth_mechanisms = PLAIN\nmaxconnections = 2\n",
      ].join(""),
    )
    const child = spawn("offlineimap", ["-o", "-c", config], { env: { ...process.env, HOME: home } })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes))
    const late = setTimeout(() => child.kill("SIGKILL"), 150_000)
    const ended = once(child, "close").then(([code]) => {
      clearTimeout(late)
      return { code: code as number | null, output: output }
    })
    return { child, ended }
  }
  const files = () =>
    ["cur", "new"].flatMap((folder) => {
      try {
        return readdirSync(path.join(inbox, folder)).map((name) => path.join(inbox, folder, name))
      } catch {
        return []
      }
    })
  const subjectOf = (file: string) => /^Subject: (.*)$/m.exec(readFileSync(file, "utf8"))![1]!
  const find = (subject: string) => files().find((one) => subjectOf(one) === subject)!
  return {
    start,
    sync: async () => {
      const { code, output } = await start().ended
      if (code !== 0) throw new Error(output)
    },
    files,
    kept: () => files().map((file) => ({ subject: subjectOf(file), flags: /2,(\w*)$/.exec(file)?.[1] ?? "" })),
    mark: (subject: string, flags: string) => {
      const file = find(subject)
      renameSync(file, path.join(inbox, "cur", `${path.basename(file).split(":")[0]}:2,${flags}`))
    },
    drop: (subject: string) => rmSync(find(subject)),
    put: (name: string, text: string) => writeFileSync(path.join(inbox, "cur", `${name}:2,S`), text),
    remove: () => rmSync(home, { recursive: true }),
  }
}

const named = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `Letter ${from + n}`)
const byName = (kept: ReadonlyArray<{ readonly subject: string }>) =>
  kept.map(({ subject }) => subject).sort((a, b) => a.localeCompare(b, "en", { numeric: true }))

describe.skipIf(!has("offlineimap"))("offlineimap", () => {
  beforeAll(async () => {
    service = await sharedService()
    token = (await signUp(service.base)).session
  })

  it("downloads everything once, even after it was killed", { timeout: 400_000 }, async () => {
    const box = await makeMailbox(service, token, 60)
    const place = makePlace(box)
    const { child, ended } = place.start()
    await eventually(
      async () => place.files().length,
      (count) => count > 0,
    )
    child.kill("SIGKILL")
    await ended
    await place.sync()
    expect(byName(place.kept())).toEqual(named(0, 60))
    await place.sync()
    expect(place.files()).toHaveLength(60)
    expect(await box.list()).toHaveLength(60)
    place.remove()
  })

  it("synchronizes flags, removals and messages both ways, then is idle", { timeout: 400_000 }, async () => {
    const box = await makeMailbox(service, token, 8)
    const place = makePlace(box)
    await place.sync()
    const of = async (subject: string) => (await box.list()).find((one) => one.subject === subject)!.id
    // Locally: read, flagged, removed, written. Remotely: read, flagged, removed.
    place.mark("Letter 0", "S")
    place.mark("Letter 1", "F")
    place.drop("Letter 2")
    place.put("1.local", "Subject: From here\nMessage-ID: <here@laptop.example>\n\nbody\n")
    await box.patch(await of("Letter 3"), { seen: true })
    await box.patch(await of("Letter 4"), { flagged: true })
    await box.remove(await of("Letter 5"))
    await place.sync()
    await place.sync()
    const remaining = ["From here", ...named(0, 2), ...named(3, 5), ...named(6, 8)]
    expect(byName(place.kept())).toEqual(remaining)
    const listed = await box.listed((messages) => messages.length === remaining.length)
    expect(subjects(listed)).toEqual(remaining)
    const marks = (subject: string) => listed.find((one) => one.subject === subject)
    expect(marks("Letter 0")).toMatchObject({ seen: true, flagged: false })
    expect(marks("Letter 1")).toMatchObject({ seen: false, flagged: true })
    expect(marks("From here")).toMatchObject({ seen: true })
    const flags = new Map(place.kept().map((one) => [one.subject, one.flags]))
    expect([flags.get("Letter 3"), flags.get("Letter 4"), flags.get("Letter 6")]).toEqual(["S", "F", ""])
    const before = place.files().sort()
    await place.sync()
    expect(place.files().sort()).toEqual(before)
    place.remove()
  })

  it("uploads messages once, even if the connection broke within a message", { timeout: 400_000 }, async () => {
    const box = await makeMailbox(service, token, 1)
    const place = makePlace(box)
    await place.sync()
    const body = `${"x".repeat(70)}\n`.repeat(400)
    for (let n = 1; n < 9; n++)
      place.put(`${n}.local`, `Subject: Letter ${n}\nMessage-ID: <${n}@laptop.example>\n\n${body}`)
    const way = await breaking(service.imapPort, 100_000)
    expect((await place.start(way.port).ended).output).toMatch(/APPEND => socket error/)
    way.close()
    await place.sync()
    expect(byName(place.kept())).toEqual(named(0, 9))
    expect(subjects(await box.listed((messages) => messages.length >= 9))).toEqual(named(0, 9))
    place.remove()
  })
})
