/** Commands for the first hour of a developer: listen, trigger, init and completions. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { runHere } from "../harness/Commands.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { runSvc, startSvc } from "../harness/Svc.ts"

let home: string
beforeAll(() => {
  home = mkdtempSync(path.join(os.tmpdir(), "svc-home-"))
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

describe("svc listen and svc trigger", () => {
  let service: TestService
  let session: string
  let key: string
  let ada: Awaited<ReturnType<typeof makeIdentity>>
  beforeAll(async () => {
    service = await sharedService()
    session = (await signUp(service.base)).session
    key = (await call(service.base, "POST", "/api/keys", { token: session, body: { name: "terminal" } })).body.key
    ada = await makeIdentity(service.base, session)
  })

  const around = () => ({ home, env: { SVC_KEY: key, SVC_API_URL: service.base } })

  it("forward the Events of a real message to a local port, signed with the printed secret", async () => {
    const receiver = await startReceiver()
    const listening = startSvc(
      around(),
      "listen",
      "--handle",
      ada.handle,
      "--events",
      "email.received",
      "--forward-to",
      receiver.url.slice(7),
    )
    await eventually(
      async () => listening.out() + listening.errors(),
      (text) => text.includes("Press Ctrl+C"),
    )
    const secret = /Signing secret: (whsec_\S+)/.exec(listening.out())![1]!
    const triggered = await runHere(around(), "trigger", "email.received", "--handle", ada.handle)
    expect(triggered, triggered.errors).toMatchObject({ code: 0, errors: "" })
    const [delivery] = await eventually(
      async () => receiver.got,
      (got) => got.length > 0,
    )
    receiver.verify(secret, delivery!)
    expect(delivery!.body).toMatchObject({
      type: "email.received",
      handle: ada.handle,
      identity: { id: ada.identity.id, handle: ada.handle },
      data: { subject: expect.stringContaining("Test of email.received") },
    })
    expect(delivery!.headers["webhook-id"]).toBe(delivery!.body.id)
    await eventually(
      async () => listening.out(),
      (text) => new RegExp(`email.received  ${ada.handle}  ${delivery!.body.id}  ->  200`).test(text),
    )
    listening.stop("SIGTERM")
    await listening.ended
    // The type was selected, so email.sent was not forwarded.
    expect(receiver.got.map(({ body }) => body.type)).toEqual(["email.received"])
    await receiver.stop()
    const { body } = await call(service.base, "GET", `/api/identities/${ada.handle}/allowed-recipients`, {
      token: session,
    })
    expect(body.allowed_recipients.map(({ reason }: { reason: string }) => reason)).toEqual(["account_owner"])
  })

  it("forward Events of Identities and only show those of the account, until the key is revoked", async () => {
    const create = { token: session, body: { name: "listener" } }
    const { body: listener } = await call(service.base, "POST", "/api/keys", create)
    let fails = false
    const receiver = await startReceiver((response) => {
      if (fails) response.destroy()
      // A redirect is an answer, and is not followed.
      else response.writeHead(307, { location: `${service.base}/api/health` }).end()
    })
    const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`
    const words = ["--forward-to", receiver.url, "--secret", secret, "--json"]
    const listening = runHere({ home, env: { ...around().env, SVC_KEY: listener.key } }, "listen", ...words)
    let n = 0
    const change = () =>
      call(service.base, "PATCH", `/api/identities/${ada.handle}/card`, {
        token: session,
        body: { description: `change ${n++}` },
      })
    await eventually(change, () => receiver.got.length > 0)
    receiver.verify(secret, receiver.got[0]!)
    fails = true
    const answered = receiver.got.length
    await eventually(change, () => receiver.got.length > answered)
    fails = false
    const { api_key } = (await call(service.base, "POST", "/api/keys", create)).body
    await change()
    const { body: listed } = await eventually(
      () => call(service.base, "GET", "/api/events?limit=5", { token: session }),
      ({ body }) => body.events.findIndex(({ data }: { data: { key_id?: string } }) => data.key_id === api_key.id) > 0,
    )
    // Events are forwarded in order, so the new key has been shown when the receiver has the Event after it.
    await eventually(
      async () => receiver.got.map(({ headers }) => headers["webhook-id"]),
      (ids) => ids.includes(listed.events[0].id),
    )
    await receiver.stop()
    await call(service.base, "DELETE", `/api/keys/${listener.api_key.id}`, { token: session })
    const { code, out, errors } = await listening
    expect([code, errors]).toEqual([2, expect.stringContaining("unauthenticated")])
    expect(receiver.got.map(({ body }) => body.type)).toEqual(receiver.got.map(() => "card.updated"))
    const events = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(events.map(({ type, forwarded = null }) => [type, forwarded])).toEqual(
      expect.arrayContaining([
        ["card.updated", "307"],
        ["card.updated", expect.stringMatching(/^failed: /)],
        ["api_key.created", null],
      ]),
    )
  })

  it("follow svc init, which creates the Identity, its key and the configuration of a client without a terminal", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "svc-init-"))
    const handle = newHandle("init")
    const init = () => runSvc({ ...around(), cwd: folder }, "init", "--handle", handle, "--client", "cursor", "--yes")
    const first = await init()
    expect(first, first.errors).toMatchObject({ code: 0, errors: "" })
    expect(first.out).toContain(`Created: ${handle}@`)
    const variables = readFileSync(path.join(folder, ".env"), "utf8")
    const written = /^SVC_KEY=(\S+)$/m.exec(variables)![1]!
    expect(variables).toContain(`SVC_API_URL=${service.base}\n`)
    const who = await call(service.base, "GET", "/api/auth/whoami", { token: written })
    expect(who.body.caller).toMatchObject({ handle })
    const { mcpServers } = JSON.parse(readFileSync(path.join(folder, ".cursor", "mcp.json"), "utf8"))
    expect(mcpServers["agent-identity"].args).toEqual(["-y", "@agent-identity/cli", "mcp", "--api", service.base])
    // A second run finds what the first one made.
    const second = await init()
    expect(second.out).toContain(`Found: ${handle}@`)
    expect(second.out).toContain("already has a SVC_KEY")
    expect(readFileSync(path.join(folder, ".env"), "utf8")).toBe(variables)
    rmSync(folder, { recursive: true, force: true })
    const unnamed = await runHere(around(), "init", "--yes")
    expect([unnamed.code, unnamed.errors]).toEqual([2, expect.stringContaining("--handle")])
  })
})

describe("svc --completions", () => {
  it.each(["bash", "zsh", "fish", "powershell"])(
    "prints a script for %s that knows commands and flags",
    async (shell) => {
      const { code, out } = await runHere({ home }, "--completions", shell)
      expect(code).toBe(0)
      for (const word of ["listen", "forward-to", "vault", "identity", "trigger"]) expect(out).toContain(word)
    },
  )
})
