/** The TypeScript SDK against the service. */
import { execFile as execFileCallback } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { promisify } from "node:util"
import {
  ApiError,
  ConnectionError,
  createClient,
  type Event,
  InvalidSignature,
  login,
  verifyWebhook,
} from "@agent-identity/sdk"
import { Webhook } from "standardwebhooks"
import { beforeAll, describe, expect, it } from "vitest"
import { generate } from "../../scripts/sdk.ts"
import { call, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

const execFile = promisify(execFileCallback)

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

const clientOf = (options: Parameters<typeof createClient>[0] = {}) =>
  createClient({ key: session, baseUrl: service.base, ...options })

/** Returns a `fetch` that answers the first requests itself, and the requests that it saw. */
const failing = (...answers: ReadonlyArray<() => Response | Promise<Response>>) => {
  const seen: Array<{ url: string; key: string | null }> = []
  const fake: typeof fetch = async (input, init) => {
    const answer = answers[seen.length]
    seen.push({ url: String(input), key: new Headers(init?.headers).get("idempotency-key") })
    return answer === undefined ? fetch(input, init) : answer()
  }
  return { fetch: fake, seen }
}
const unreachable = () => Promise.reject(new TypeError("fetch failed"))
const busy = () => new Response("", { status: 503, headers: { "retry-after": "0" } })

describe("SDK", () => {
  it.each([...generate()])("has the types and calls of the current API in %s", (file, text) => {
    expect(readFileSync(file, "utf8") === text, "run: node scripts/sdk.ts").toBe(true)
  })

  it("lets two agents exchange mail", async () => {
    const client = clientOf()
    const ada = await client.createIdentity("sdk-ada")
    const grace = await client.createIdentity("sdk-grace")
    const [from, to] = [(await ada.identities.read()).email, (await grace.identities.read()).email]
    await ada.mailSettings.allow({ address: to })
    await grace.mailSettings.allow({ address: from })
    const arriving = grace.waitForMessage({ from, timeoutSeconds: 30 })
    await ada.send({ to: [to], subject: "Numbers", text: "Shall we?" })
    const message = (await arriving)!
    expect(message).toMatchObject({ subject: "Numbers", text_reply: expect.stringMatching(/^Shall we\?/) })
    const answer = ada.waitForMessage({ query: "subject:Numbers", from: to, timeoutSeconds: 30 })
    await grace.reply(message, { text: "Yes." })
    expect(await answer).toMatchObject({ text_reply: expect.stringMatching(/^Yes\./) })
    expect(await ada.waitForMessage({ query: "subject:never", timeoutSeconds: 1 })).toBeUndefined()
  })

  it("iterates over the pages of a list", async () => {
    const owner = clientOf()
    const { handle } = await owner.createIdentity("sdk-pages")
    const vault = owner.identity(handle).vault
    for (let n = 0; n < 5; n++) await vault.put({ name: `secret.${n}`, value: `value ${n}` })
    const names: Array<string> = []
    for await (const { name } of vault.list.all({ limit: 2 })) names.push(name)
    expect(names.toSorted()).toEqual([0, 1, 2, 3, 4].map((n) => `secret.${n}`))
    expect((await vault.value({ name: "secret.3" })).value).toBe("value 3")
    await vault.remove({ name: "secret.3" })
    await expect(vault.value({ name: "secret.3" })).rejects.toMatchObject({ code: "not_found", status: 404 })
  })

  it("returns what is not JSON as the response", async () => {
    const client = clientOf()
    const response = await client.audit.export()
    expect(response.headers.get("content-type")).toContain("application/jsonl")
    expect((await response.text()).length).toBeGreaterThan(0)
  })
})

describe("An error", () => {
  it("has the code, the advice and the wrong members of the problem", async () => {
    const error = await clientOf()
      .identities.create({ handle: "x" })
      .catch((one: unknown) => one)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ status: 400, code: "handle_invalid", agentHint: "fix_call" })
    expect((error as ApiError).requestId).toMatch(/^req_/)
  })

  it("of an unreachable service is a ConnectionError, and an abort is the reason of the caller", async () => {
    const lost = createClient({ baseUrl: "http://127.0.0.1:9", key: "k", retries: 0 })
    await expect(lost.session.whoami()).rejects.toBeInstanceOf(ConnectionError)
    const abort = new AbortController()
    abort.abort(new Error("enough"))
    await expect(clientOf().session.whoami({}, { signal: abort.signal })).rejects.toThrow("enough")
    const silent = clientOf({
      timeout: 20,
      retries: 0,
      fetch: (_, init) =>
        new Promise((_resolve, reject) => init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason))),
    })
    await expect(silent.session.whoami()).rejects.toThrow("gave no response within 20 ms")
  })

  it("of a proxy is an ApiError too", async () => {
    const { fetch } = failing(() => new Response("<h1>Forbidden</h1>", { status: 403 }))
    await expect(clientOf({ fetch }).session.whoami()).rejects.toMatchObject({
      code: "unexpected_response",
      status: 403,
      agentHint: "stop",
    })
  })
})

describe("A repeated attempt", () => {
  it("has the key of the first one, so that the action happens once", async () => {
    const { handle } = await clientOf().createIdentity("sdk-once")
    let isFirst = true
    const seen: Array<string | null> = []
    // The service acts, but its response is lost.
    const lossy: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      seen.push(new Headers(init?.headers).get("idempotency-key"))
      if (!isFirst) return response
      isFirst = false
      throw new TypeError("connection reset")
    }
    const { id } = await clientOf({ fetch: lossy }).identity(handle).sending.draft({ subject: "Once", text: "x" })
    expect(seen).toHaveLength(2)
    expect(seen[0]).toBe(seen[1])
    const { drafts } = await clientOf().identity(handle).sending.drafts()
    expect(drafts.map((draft) => draft.id)).toEqual([id])
  })

  it("follows a busy service, and ends after the last one", async () => {
    const back = failing(busy, unreachable, busy)
    expect((await clientOf({ fetch: back.fetch }).session.whoami()).org).toBeDefined()
    expect(back.seen).toHaveLength(4)
    const gone = failing(busy, busy)
    await expect(clientOf({ fetch: gone.fetch, retries: 1 }).session.whoami()).rejects.toMatchObject({ status: 503 })
    expect(gone.seen).toHaveLength(2)
  })

  it("is not made for a call without a key whose outcome is unknown, nor if the service asks for a long wait", async () => {
    const unknown = failing(unreachable)
    const body = { name: "sdk" }
    await expect(clientOf({ fetch: unknown.fetch }).deviceLogin.start(body)).rejects.toBeInstanceOf(ConnectionError)
    expect(unknown.seen).toHaveLength(1)
    const late = failing(busy)
    await expect(clientOf({ fetch: late.fetch }).deviceLogin.start(body)).rejects.toMatchObject({ status: 503 })
    expect(late.seen).toHaveLength(1)
    const long = failing(() => new Response("", { status: 429, headers: { "retry-after": "3600" } }))
    await expect(clientOf({ fetch: long.fetch }).session.whoami()).rejects.toMatchObject({
      status: 429,
      agentHint: "wait",
    })
    expect(long.seen).toHaveLength(1)
  })
})

describe("The stream", () => {
  it("yields Events and continues after the last one when the connection is lost", async () => {
    const opened: Array<string | null> = []
    /** The first connection ends after its first Event. */
    const cut: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      opened.push(new Headers(init?.headers).get("last-event-id"))
      if (opened.length > 1) return response
      let isOver = false
      const once = new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          if (isOver) return
          controller.enqueue(chunk)
          if (!new TextDecoder().decode(chunk).includes("data:")) return
          isOver = true
          controller.terminate()
        },
      })
      return new Response(response.body!.pipeThrough(once), { headers: response.headers })
    }
    const ada = await clientOf().createIdentity("sdk-stream")
    const abort = new AbortController()
    const events: Array<Event> = []
    const reading = (async () => {
      const stream = clientOf({ fetch: cut }).identity(ada.handle).stream({ signal: abort.signal })
      for await (const event of stream) events.push(event)
    })()
    await eventually(
      async () => opened.length,
      (count) => count > 0,
    )
    for (const name of ["One", "Two", "Three"]) {
      await ada.cards.patch({ name })
      await eventually(
        async () => events.length,
        (count) => count > 0,
      )
    }
    await eventually(
      async () => events.filter(({ type }) => type === "card.updated"),
      (found) => found.length === 3,
    )
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
    expect(opened[0]).toBeNull()
    expect(opened[1]).toBe(events[0]!.id)
    abort.abort()
    await reading
  })

  it("fails if the service refuses it", async () => {
    const stream = createClient({ baseUrl: service.base, key: "svc_admin_wrong" }).stream()
    await expect(stream.next()).rejects.toMatchObject({ code: "unauthenticated" })
  })
})

/** Returns a delivery with a valid signature that was made a while ago. */
const signedAt = (secret: string, secondsAgo: number, body: string) => {
  const at = new Date(Date.now() - secondsAgo * 1000)
  const headers = {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign("evt_1", at, body),
  }
  return { headers, body }
}

describe("A delivery of a Webhook", () => {
  it("is verified, and refused if it was altered, is old, or was signed with another secret", async () => {
    const receiver = await startReceiver()
    try {
      const ada = await clientOf().createIdentity("sdk-hooked")
      const { signing_secret } = await ada.webhooks.create({ url: receiver.url, event_types: ["*"] })
      const secret = signing_secret!
      await ada.cards.patch({ name: "Hooked" })
      const [got] = await eventually(
        async () => receiver.got.filter(({ body }) => body.type === "card.updated"),
        (found) => found.length > 0,
      )
      const { raw: body } = got!
      const headers = Object.fromEntries(Object.entries(got!.headers).map(([name, value]) => [name, String(value)]))
      expect(await verifyWebhook(signedAt(secret, 60, body), secret)).toMatchObject({ type: "card.updated" })
      expect(await verifyWebhook({ headers, body }, secret)).toMatchObject({ type: "card.updated" })
      expect(
        await verifyWebhook(new Request(receiver.url, { method: "POST", headers, body }), [
          `whsec_${btoa("old")}`,
          secret,
        ]),
      ).toBeDefined()
      const refused = [
        () => verifyWebhook({ headers, body: body.replace("card.updated", "card.updateD") }, secret),
        () => verifyWebhook({ headers, body }, `whsec_${btoa("another secret")}`),
        () => verifyWebhook(signedAt(secret, 301, body), secret),
        () => verifyWebhook(signedAt(secret, -301, body), secret),
        () => verifyWebhook({ headers: { ...headers, "webhook-id": "evt_other" }, body }, secret),
        () =>
          verifyWebhook(
            { headers: { ...headers, "webhook-timestamp": String(Math.floor(Date.now() / 1000) - 301) }, body },
            secret,
          ),
        () => verifyWebhook({ headers: { ...headers, "webhook-timestamp": "soon" }, body }, secret),
        () => verifyWebhook({ headers: { ...headers, "webhook-signature": "v1,%%%" }, body }, secret),
        () => verifyWebhook({ headers: {}, body }, secret),
      ]
      for (const one of refused) await expect(one()).rejects.toBeInstanceOf(InvalidSignature)
    } finally {
      await receiver.stop()
    }
  })
})

describe("A login", () => {
  it("gives the program a key once the account holder approves its code", async () => {
    let shown: { url: string; code: string } | undefined
    const granted = await login({
      baseUrl: service.base,
      name: "sdk program",
      scopes: ["identity:read"],
      expiresInDays: 1,
      onCode: (code) => {
        shown = code
        void call(service.base, "POST", `/api/auth/device/${code.code}/approve`, { token: session, body: {} })
      },
    })
    expect(shown!.url).toContain(shown!.code)
    const { caller } = await createClient({ baseUrl: service.base, key: granted.key }).session.whoami()
    expect(caller).toMatchObject({ kind: "admin_key", key_name: "sdk program" })
  })
})

describe("The guide", () => {
  it("has programs that run", async () => {
    const root = path.join(import.meta.dirname, "..", "..")
    const guide = readFileSync(path.join(root, "docs", "sdk.md"), "utf8")
    const programs = [...guide.matchAll(/```ts\n([^`]*(?:`[^`]+`[^`]*)*)```/g)].map(([, program]) => program!)
    expect(programs.length).toBeGreaterThanOrEqual(6)
    const folder = mkdtempSync(path.join(root, "node_modules", ".cache", "sdk-guide-"))
    try {
      for (const [index, program] of programs.entries()) {
        const file = path.join(folder, `program${index}.mjs`)
        writeFileSync(file, program)
        const env = { PATH: process.env["PATH"], SVC_KEY: session, SVC_API_URL: service.base }
        const out = execFile(process.execPath, [file], { env })
        await expect(out, program).resolves.toBeDefined()
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("The package", () => {
  it("is small and stands alone", async () => {
    const { rolldown } = await import("rolldown")
    const bundle = await rolldown({
      input: path.join(import.meta.dirname, "..", "..", "packages", "sdk", "src", "index.ts"),
    })
    const { output } = await bundle.generate({ format: "esm", minify: true })
    expect(output).toHaveLength(1)
    expect(output[0].imports).toEqual([])
    expect(output[0].code.length).toBeLessThan(30_000)
    expect(output[0].code).not.toMatch(/\bBuffer\b|node:/)
    await bundle.close()
  })
})
