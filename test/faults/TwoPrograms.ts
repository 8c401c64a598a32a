/**
 * Two mail programs that sync a Mailbox with their own Maildirs (mbsync, both ways), a third one that works in it
 * directly, and concurrent API changes and incoming mail, all driven by a seed. At the end, both Maildirs and the API
 * must agree with the Mailbox.
 *
 * `TWO_PROGRAMS_SECONDS` sets the duration, `TWO_PROGRAMS_SEED` the seed.
 */
import { execFile, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, unlinkSync } from "node:fs"
import { writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { ImapClient } from "../harness/Imap.ts"
import { send } from "../harness/Mail.ts"
import type { Row } from "../harness/Report.ts"

const run = promisify(execFile)

/** A seeded random generator (mulberry32). */
const drawing = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

const folders = ["INBOX", "Work", "Trash"]
const subjectOf = (text: string) => /^Subject: (\S+)/m.exec(text)?.[1] ?? "?"

/** Creates a program with its Maildir. */
const programOf = (home: string, port: number, user: string, pass: string) => {
  mkdirSync(path.join(home, "md"), { recursive: true })
  const config = path.join(home, "rc")
  writeFileSync(
    config,
    [
      `IMAPAccount a\nHost 127.0.0.1\nPort ${port}\nUser ${user}\nPass ${pass}\nSSLType None\nAuthMechs PLAIN\nTimeout 60\n`,
      "IMAPStore r\nAccount a\n",
      `MaildirStore l\nPath ${home}/md/\nInbox ${home}/md/INBOX\nSubFolders Verbatim\n`,
      `Channel c\nFar :r:\nNear :l:\nPatterns ${folders.join(" ")}\nCreate Both\nExpunge Both\nSyncState *\n`,
    ].join("\n"),
  )
  const at = (folder: string) => path.join(home, "md", folder)
  const files = (folder: string) =>
    ["new", "cur"].flatMap((part) => {
      const place = path.join(at(folder), part)
      return existsSync(place) ? readdirSync(place).map((name) => path.join(place, name)) : []
    })
  return {
    /** May fail if the Mailbox changes during the sync; the next sync corrects it. */
    sync: async () => {
      try {
        await run("mbsync", ["-q", "-c", config, "c"])
        return ""
      } catch (error) {
        return String((error as { stderr?: string }).stderr ?? error)
      }
    },
    files,
    add: (folder: string, subject: string) => {
      if (!existsSync(path.join(at(folder), "cur"))) return
      writeFileSync(path.join(at(folder), "cur", `${subject}.local:2,`), `Subject: ${subject}\n\nfrom here\n`)
    },
    /** Returns every message of a folder with its flags. */
    holds: (folder: string) =>
      files(folder)
        .map((name) => {
          const marks = /:2,([A-Z]*)$/.exec(name)?.[1] ?? ""
          return `${subjectOf(readFileSync(name, "latin1"))} ${marks.includes("S") ? "S" : ""}${marks.includes("F") ? "F" : ""}`
        })
        .sort(),
  }
}

const holdsOf = async (client: ImapClient, folder: string) => {
  await client.say(`SELECT ${folder}`)
  const { untagged } = await client.say("FETCH 1:* (FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
  return untagged
    .filter((line) => /^\* \d+ FETCH/.test(line))
    .map((line) => `${subjectOf(line)} ${line.includes("\\Seen") ? "S" : ""}${line.includes("\\Flagged") ? "F" : ""}`)
    .sort()
}

export const twoPrograms = async (): Promise<Row> => {
  const seconds = Number(process.env["TWO_PROGRAMS_SECONDS"] ?? 180)
  const seed = Number(process.env["TWO_PROGRAMS_SEED"] ?? 20_261_122)
  const what = `two programs with their own Maildirs, a third in the Mailbox, API changes and incoming mail, ${seconds} s (seed ${seed})`
  if (spawnSync("which", ["mbsync"]).status !== 0) {
    return { id: "two-programs", ok: true, what, figures: { left: "out: mbsync is not installed" } }
  }
  const draw = drawing(seed)
  const some = <A>(all: ReadonlyArray<A>): A | undefined => all[Math.floor(draw() * all.length)]
  const deployment = await deploy()
  const home = mkdtempSync(path.join(os.tmpdir(), "svc-two-"))
  try {
    const service = await deployment.start()
    const { session: token } = await signUp(service.base)
    const { handle, secrets } = await makeIdentity(service.base, token)
    const { username, password } = secrets.imap
    const api = (method: string, at: string, body?: unknown) =>
      call(service.base, method, `/api/identities/${handle}${at}`, { token, ...(body === undefined ? {} : { body }) })
    const all = async () => {
      const found: Array<{ id: string; subject: string; seen: boolean; flagged: boolean }> = []
      let cursor = ""
      do {
        const { body } = await api("GET", `/messages?limit=100${cursor}`)
        found.push(...body.messages)
        cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`
      } while (cursor !== "")
      return found
    }
    const client = await ImapClient.login(service.imapPort, username, password)
    await client.say("CREATE Work")
    const programs = ["a", "b"].map((name) => programOf(path.join(home, name), service.imapPort, username, password))
    const done: Record<string, number> = {}
    const refusals: Array<string> = []
    let subjects = 0
    const subject = (by: string) => `${by}-${subjects++}`
    const locally = (program: (typeof programs)[number]) => {
      const pick = draw()
      const folder = some(folders)!
      const file = some(program.files(folder))
      if (pick < 0.3 || file === undefined) return program.add(folder, subject("local"))
      if (pick < 0.5) return unlinkSync(file)
      const base = path.basename(file).replace(/:2,.*$/, "")
      const marks = ["S", "F", "FS", "RS", "ST"]
      renameSync(file, path.join(path.dirname(path.dirname(file)), "cur", `${base}:2,${some(marks)}`))
    }
    const directly = async () => {
      await client.say(`SELECT ${some(folders)}`)
      const count = Math.max(1, (await client.say("SEARCH ALL")).untagged[0]!.split(" ").length - 2)
      const number = 1 + Math.floor(draw() * count)
      const pick = draw()
      if (pick < 0.3) await client.append(some(folders)!, `Subject: ${subject("append")}\n\nbody\n`, "\\Seen")
      else if (pick < 0.55)
        await client.say(`STORE ${number} ${draw() < 0.5 ? "+" : "-"}FLAGS (${some(["\\Seen", "\\Flagged"])})`)
      else if (pick < 0.7) await client.say(`COPY ${number} ${some(folders)}`)
      else if (pick < 0.9) await client.say(`MOVE ${number} ${some(folders)}`)
      else {
        await client.say(`STORE ${number} +FLAGS (\\Deleted)`)
        await client.say("EXPUNGE")
      }
    }
    const overRest = async () => {
      const one = some(await all())
      if (one === undefined) return
      if (draw() < 0.25) await api("DELETE", `/messages/${one.id}`)
      else await api("PATCH", `/messages/${one.id}`, { seen: draw() < 0.5, flagged: draw() < 0.5 })
    }
    const ways: ReadonlyArray<readonly [name: string, share: number, act: () => Promise<unknown> | void]> = [
      [
        "arrived",
        0.2,
        () =>
          send(service.smtpPort, {
            from: "grace@example.org",
            to: `${handle}@mail.localhost`,
            subject: subject("mail"),
            text: "hello",
          }),
      ],
      ["over REST", 0.15, overRest],
      ["in the Mailbox", 0.25, directly],
      ["in a Maildir", 0.25, () => locally(some(programs)!)],
      [
        "synced",
        0.15,
        async () => {
          // Sometimes both sync concurrently.
          const which = draw() < 0.4 ? programs : [some(programs)!]
          for (const printed of await Promise.all(which.map(({ sync }) => sync())))
            if (printed !== "") refusals.push(printed.trim().slice(0, 200))
        },
      ],
    ]
    const until = Date.now() + seconds * 1000
    while (Date.now() < until) {
      let pick = draw()
      const [name, , act] = ways.find(([, share]) => (pick -= share) < 0) ?? ways[0]!
      await act()
      done[name] = (done[name] ?? 0) + 1
    }
    // Flags of the last rounds need several syncs until both programs have them.
    for (let n = 0; n < 3; n++) for (const { sync } of programs) await sync()
    const differing: Array<string> = []
    const here = new Map<string, string>()
    for (const folder of folders) {
      const mailbox = await holdsOf(client, folder)
      for (const one of mailbox) here.set(one.split(" ")[0]!, one)
      for (const [n, { holds }] of programs.entries()) {
        const local = holds(folder)
        if (JSON.stringify(local) === JSON.stringify(mailbox)) continue
        const odd = [...local.filter((one) => !mailbox.includes(one)), ...mailbox.filter((one) => !local.includes(one))]
        differing.push(
          `${folder} of program ${n}: ${local.length} for ${mailbox.length}: ${odd.slice(0, 5).join("; ")}`,
        )
      }
    }
    const printed = (await all()).map(
      ({ subject, seen, flagged }) => `${subject} ${seen ? "S" : ""}${flagged ? "F" : ""}`,
    )
    if (JSON.stringify(printed.sort()) !== JSON.stringify([...here.values()].sort())) {
      differing.push(`the API says ${printed.length} messages, the folders hold ${here.size}`)
    }
    client.close()
    return {
      id: "two-programs",
      ok: differing.length === 0,
      what,
      figures: {
        ...done,
        "final messages": printed.length,
        "rejected syncs": refusals.length,
        differing: differing.join(" | ") || "nothing",
        refusals: [...new Set(refusals)].slice(0, 3).join(" | ") || "none",
      },
    }
  } finally {
    await deployment.stop()
    rmSync(home, { recursive: true, force: true })
  }
}
