/**
 * Faults of the public interface: races, revoked credentials, leaked secrets, malformed requests and an interrupted
 * deletion.
 */
import { execFileSync } from "node:child_process"
import { connect } from "node:net"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { operations, pathOf } from "../api/Operations.ts"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { deploy, type Deployment, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { inStore } from "./Store.ts"
import { times } from "./Load.ts"

/**
 * Polls fifty times at the moment of the decision, with concurrent approval and denial, over three processes, twenty
 * times.
 */
export const deviceRace = async (): Promise<Row> => {
  const deployment = await deploy()
  const rounds = times(20)
  try {
    const first = await deployment.start(["api", "actors"])
    const bases = [first, await deployment.start(["api"]), await deployment.start(["api"])].map(({ base }) => base)
    const { session } = await signUp(first.base)
    let wrong = 0
    let keys = 0
    for (let round = 0; round < rounds; round++) {
      const device = (await call(bases[0]!, "POST", "/api/auth/device", { body: { name: "race" } })).body
      const decide = (base: string, verb: string) =>
        call(base, "POST", `/api/auth/device/${device.user_code}/${verb}`, { token: session })
      const polls = Array.from({ length: 50 }, (_, n) =>
        call(bases[n % 3]!, "POST", "/api/auth/device/token", { body: { device_code: device.device_code } }),
      )
      const decisions = await Promise.all([decide(bases[1]!, "approve"), decide(bases[2]!, "deny")])
      const answers = await Promise.all(polls)
      answers.push(
        await call(bases[0]!, "POST", "/api/auth/device/token", { body: { device_code: device.device_code } }),
      )
      const collected = answers.filter(({ status }) => status === 200).length
      keys += collected
      const approved = decisions[0]!.status === 204
      if (decisions.filter(({ status }) => status === 204).length !== 1 || collected !== (approved ? 1 : 0)) wrong++
    }
    const [minted] = await inStore<{ n: number }>(deployment, "select count(*)::int as n from api_key")
    return {
      id: "device-race",
      ok: wrong === 0 && minted!.n === keys,
      what: `50 polls during concurrent approve and deny requests, over three processes, ${rounds} times`,
      figures: { "keys collected": keys, "keys minted": minted!.n, "failed rounds": wrong },
    }
  } finally {
    await deployment.stop()
  }
}

/** Calls every endpoint with credentials that another process has just revoked. */
export const credential = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const one = await deployment.start(["api", "actors"])
    const other = await deployment.start(["api"])
    const owner = await signUp(one.base)
    const { handle, secrets } = await makeIdentity(one.base, owner.session)
    const minted = (await call(one.base, "POST", "/api/keys", { token: owner.session, body: { name: "k" } })).body
    await call(one.base, "DELETE", `/api/keys/${minted.api_key.id}`, { token: owner.session })
    await call(one.base, "DELETE", `/api/keys/${secrets.api_key.id}`, { token: owner.session })
    let refused = 0
    const let_in: Array<string> = []
    const ask = async (token: string) => {
      for (const operation of operations.filter(({ access }) => access !== undefined)) {
        const { status } = await call(other.base, operation.method, pathOf(operation, handle), {
          token,
          ...(operation.body === undefined ? {} : { body: operation.body }),
        })
        if (status === 401) refused++
        else let_in.push(`${operation.id}: ${status}`)
      }
    }
    await ask(minted.key)
    await ask(secrets.identity_key)
    await call(one.base, "POST", "/api/account/deletion", { token: owner.session, body: { confirm: owner.email } })
    await ask(owner.session)
    return {
      id: "credential",
      ok: let_in.length === 0,
      what: "every endpoint with a revoked Admin Key, a revoked Identity Key, and a session of an account in deletion, on another process",
      figures: { refused, accepted: let_in.length, ...(let_in.length === 0 ? {} : { which: let_in.join(", ") }) },
    }
  } finally {
    await deployment.stop()
  }
}

const everywhere = (deployment: Deployment, text: string) => {
  try {
    return execFileSync("grep", ["-rlaF", text, path.join(deployment.directory, "pg18")], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line !== "")
  } catch {
    return []
  }
}

/** Sends recognisable secrets over all interfaces, then searches files, logs and responses for them. */
export const canary = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const { handle, secrets } = await makeIdentity(service.base, owner.session)
    const value = `canary-${newHandle("secret")}`
    const answers: Array<string> = []
    const keep = async (answer: ReturnType<typeof call>) => void answers.push(JSON.stringify((await answer).body))
    const vault = (method: string, body?: unknown, more = "") =>
      call(service.base, method, `/api/vault/secrets/canary${more}`, {
        token: owner.session,
        ...(body === undefined ? {} : { body }),
      })
    await keep(vault("PUT", { value }))
    await keep(vault("PUT", { value, unknown: value }))
    await keep(vault("PUT", { value: [value] }))
    await keep(vault("PUT", `{"value": "${value}"`))
    await keep(call(service.base, "GET", "/api/vault/secrets", { token: owner.session }))
    await keep(call(service.base, "GET", "/api/nothing", { token: secrets.identity_key }))
    await call(service.base, "POST", "/api/exports", { token: owner.session })
    await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: owner.session,
      body: { url: "http://127.0.0.1:9/", event_types: ["*"] },
    })
    await sleep(1_500)
    // A checkpoint writes memory to the files.
    await inStore(deployment, "checkpoint")
    const seeded = {
      "vault value": value,
      "Identity Key": secrets.identity_key as string,
      "IMAP password": secrets.imap.password as string,
      session: owner.session,
    }
    const hits = Object.entries(seeded).flatMap(([what, text]) => [
      ...everywhere(deployment, text).map((file) => `${what} in ${path.basename(file)}`),
      ...(service.output().includes(text) ? [`${what} in the log`] : []),
      ...answers.filter((answer) => answer.includes(text)).map(() => `${what} in an answer`),
    ])
    return {
      id: "canary",
      ok: hits.length === 0,
      what: "four kinds of secrets, searched for in the database files, the log and responses that must not contain them",
      figures: {
        seeded: Object.keys(seeded).length,
        hits: hits.length,
        ...(hits.length === 0 ? {} : { where: hits.join(", ") }),
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Sends malformed requests next to those of a regular client. */
export const hostileHttp = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const port = Number(new URL(service.base).port)
    const url = `/api/identities/${handle}/card`
    const statuses = new Map<number, number>()
    const count = (status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const raw = (bytes: string) =>
      new Promise<number>((resolve) => {
        const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
        let text = ""
        socket.on("data", (chunk) => {
          text += chunk.toString("latin1")
          const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
          if (status === undefined) return
          resolve(Number(status))
          socket.destroy()
        })
        socket.on("close", () => resolve(0))
        socket.on("error", () => resolve(0))
      })
    const bodies = [
      `${"[".repeat(10_000)}${"]".repeat(10_000)}`,
      `{"a":`.repeat(10_000),
      '{"__proto__":{"name":"x"}}',
      '{"constructor":{"prototype":{"x":1}}}',
      '{"name":"one","name":"two"}',
      `{"name":"${"x".repeat(900_000)}"}`,
      `{"name":"\\u0000"}`,
      `{"name":"\\ud800"}`,
      "null",
      "1e999",
      "\u{feff}{}",
      `{"name":"${"x".repeat(1_100_000)}"}`,
    ]
    for (let round = 0; round < 5; round++) {
      for (const body of bodies) count((await call(service.base, "PATCH", url, { token: session, body })).status)
    }
    const head = `Host: x\r\nAuthorization: Bearer ${session}\r\n`
    const requests = [
      `GET ${url} HTTP/1.1\r\n${head}${"X: y\r\n".repeat(5_000)}\r\n`,
      `GET /${"a".repeat(70_000)} HTTP/1.1\r\n${head}\r\n`,
      `PATCH ${url} HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `PATCH ${url} HTTP/1.1\r\n${head}Content-Length: -1\r\n\r\n`,
      `GET ${url}\0 HTTP/1.1\r\n${head}\r\n`,
      `GET ${url} HTTP/1.1\r\nBad Header: x\r\n\r\n`,
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ]
    for (const request of requests) count(await raw(request))
    // Bodies that arrive slowly, and requests that never end.
    const slow = Array.from({ length: 200 }, () => {
      const socket = connect(port, "127.0.0.1", () =>
        socket.write(`PATCH ${url} HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`),
      )
      socket.on("error", () => {})
      return socket
    })
    const start = performance.now()
    const honest = await call(service.base, "GET", url, { token: session })
    const took = Math.round(performance.now() - start)
    for (const socket of slow) socket.destroy()
    const failed = statuses.get(500) ?? 0
    return {
      id: "hostile-http",
      ok: failed === 0 && honest.status === 200 && honest.body.name === "two",
      what: "malformed heads and bodies and 200 endless bodies, beside a regular reader",
      figures: {
        ...Object.fromEntries(
          [...statuses].toSorted(([a], [b]) => a - b).map(([status, times]) => [`answered ${status}`, times]),
        ),
        "regular client ms": took,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Deletes an account while the only process is killed at random moments. */
export const killDelete = async (): Promise<Row> => {
  const deployment = await deploy()
  const kills = times(15)
  try {
    let service = await deployment.start()
    let remaining = 0
    let slow = 0
    const handles: Array<string> = []
    for (let kill = 0; kill < kills; kill++) {
      const owner = await signUp(service.base)
      const made = await Promise.all([1, 2, 3].map(() => makeIdentity(service.base, owner.session)))
      handles.push(...made.map(({ handle }) => handle))
      await send(service.smtpPort, {
        from: "a@example.org",
        to: `${made[0]!.handle}@mail.localhost`,
        subject: "x",
        text: "x",
      })
      await call(service.base, "PUT", "/api/vault/secrets/x", { token: owner.session, body: { value: "y" } })
      const accepted = await call(service.base, "POST", "/api/account/deletion", {
        token: owner.session,
        body: { confirm: owner.email },
      })
      if (accepted.status !== 202) throw new Error(`the deletion answered ${accepted.status}`)
      const isLetIn = async () =>
        (await call(service.base, "GET", "/api/auth/whoami", { token: owner.session })).status !== 401
      if (await isLetIn()) remaining++
      await sleep(Math.random() * 800)
      service.signal("SIGKILL")
      await service.exited
      service = await deployment.start()
      if (await isLetIn()) remaining++
      await until(
        "the account's end",
        async () =>
          (
            await inStore<{ n: number }>(deployment, `select count(*)::int as n from org where id = '${owner.org.id}'`)
          )[0]!.n === 0,
        60,
      ).catch(() => slow++)
    }
    const [remains] = await inStore<{ n: number }>(
      deployment,
      "select (select count(*) from identity) + (select count(*) from message) + (select count(*) from message_content) + (select count(*) from vault_secret) + (select count(*) from mailbox) as n",
    )
    const [taken] = await inStore<{ n: number }>(deployment, "select count(*)::int as n from handle")
    return {
      id: "kill-delete",
      ok: remaining === 0 && slow === 0 && Number(remains!.n) === 0 && taken!.n === handles.length,
      what: `kill -9 of the whole service 0 to 0.8 s after a deletion was accepted, ${kills} times`,
      figures: {
        deletions: kills,
        "credentials accepted": remaining,
        "unfinished after 60 s": slow,
        "rows left": Number(remains!.n),
        "Handles kept": taken!.n,
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Checks that three API processes together enforce the limits of one Org. */
export const limits = async (): Promise<Row> => {
  const deployment = await deploy()
  const quota = 600
  try {
    const env = { SVC_LIMIT_CALLS: String(quota) }
    const first = await deployment.start(["api", "actors"], env)
    const bases = [first, await deployment.start(["api"], env), await deployment.start(["api"], env)].map(
      ({ base }) => base,
    )
    const { session } = await signUp(first.base)
    // A full window, from its start for most of its length.
    await sleep(60_500 - (Date.now() % 60_000))
    const end = Date.now() + 20_000
    let passed = 0
    let refused = 0
    await Promise.all(
      Array.from({ length: 24 }, async (_, worker) => {
        while (Date.now() < end) {
          const { status } = await call(bases[worker % 3]!, "GET", "/api/auth/whoami", { token: session })
          if (status === 200) passed++
          else refused++
        }
      }),
    )
    return {
      id: "limits",
      ok: passed <= quota && passed >= quota * 0.9 && refused > 0,
      what: `one Org calling three API processes as fast as it can within one window of ${quota}`,
      figures: { passed, refused },
    }
  } finally {
    await deployment.stop()
  }
}
