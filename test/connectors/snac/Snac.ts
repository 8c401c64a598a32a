/** A Fediverse server that is neither Mastodon nor ours: snac (Debian's `snac2`), if installed. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

const filesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : [])

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })

/** Starts a server with these accounts, which accept every follow request. */
export const startSnac = async (users: ReadonlyArray<string>) => {
  const port = await freePort()
  const host = `127.0.0.1:${port}`
  const folder = mkdtempSync(join(tmpdir(), "snac-"))
  const data = join(folder, "data")
  const quiet = { stdio: ["pipe", "pipe", "ignore"] as ["pipe", "pipe", "ignore"] }
  execFileSync("snac", ["init", data], { ...quiet, input: `127.0.0.1\n${port}\n${host}\n\n\n` })
  const settings = join(data, "server.json")
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), protocol: "http" }))
  const passwords = new Map(
    users.map((user) => {
      const output = execFileSync("snac", ["adduser", data, user], quiet).toString()
      return [user, /password is (\S+)/.exec(output)?.[1] ?? ""]
    }),
  )
  const server: ChildProcess = spawn("snac", ["httpd", data], {
    stdio: ["ignore", process.env.SNACLOG ? "inherit" : "ignore", process.env.SNACLOG ? "inherit" : "ignore"],
  })
  const base = `http://${host}`
  for (let tries = 0; tries < 100; tries++) {
    if (
      await fetch(`${base}/api/v1/instance`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break
    await sleep(100)
  }
  return {
    base,
    host,
    /** Signs in as the account holder at the authorization page, and returns the redirect address. */
    allow: async (page: string, user: string): Promise<string> => {
      const shown = await fetch(page)
      if (!shown.ok) throw new Error(`the page answered ${shown.status}`)
      const query = new URL(page).searchParams
      const answer = await fetch(`${base}/oauth/x-snac-login`, {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({
          login: user,
          passwd: passwords.get(user) ?? "",
          redir: query.get("redirect_uri") ?? "",
          cid: query.get("client_id") ?? "",
          state: query.get("state") ?? "",
        }),
      })
      const location = answer.headers.get("location")
      if (location === null) throw new Error(`the page answered ${answer.status}: ${await answer.text()}`)
      return location
    },
    /** Sends a note from one account to another, and waits until the recipient is notified. */
    say: async (user: string, to: string, text: string) => {
      const notified = () => filesIn(join(data, "user", to, "notify")).length
      const before = notified()
      execFileSync("snac", ["note", data, user, text], quiet)
      for (let tries = 0; notified() === before && tries < 600; tries++) await sleep(100)
    },
    /** Returns the names of the server's token files. */
    tokens: () =>
      spawnSync("ls", [join(data, "token")])
        .stdout.toString()
        .split("\n")
        .filter(Boolean),
    stop: async () => {
      const exited = new Promise((resolve) => server.once("exit", resolve))
      server.kill("SIGTERM")
      await Promise.race([exited, sleep(3_000).then(() => server.kill("SIGKILL"))])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
