/**
 * Cuts connections to PostgreSQL at random while callers repeat every request until it has an answer. Afterwards, what the
 * service stored, recorded, sent and delivered must be what the answers said.
 */
import * as path from "node:path"
import { makeIdentity, newHandle, signUp } from "../../harness/Client.ts"
import { deploy, type Deployment, type Process, until } from "../../harness/Deployment.ts"
import { startReceiver } from "../../harness/Receiver.ts"
import type { Row } from "../../harness/Report.ts"
import { startCrashingRelay } from "../CrashingRelay.ts"
import { settings as relaySettings } from "../Sending.ts"
import { inStore } from "../Store.ts"
import * as Aftermath from "./Aftermath.ts"
import { Caller, type CallerOptions } from "./Caller.ts"
import { Findings, noEffects } from "./Findings.ts"
import { identities } from "./Identities.ts"
import { incoming } from "./Incoming.ts"
import { outgoing } from "./Outgoing.ts"
import { RepeatingClient } from "./RepeatingClient.ts"
import { settings } from "./Settings.ts"

/** A repeat meets another process than its first attempt, and actors move when a lock session is lost. */
const processes = 3
const callers = 12
/** The share of writes to PostgreSQL at which a connection is cut: two of five requests are repeated. */
const cutsPerMille = 40

/** Starts processes whose connections can be cut. */
const startProcesses = async (deployment: Deployment, seed: number, relayPort: number) => {
  const started: Array<Process> = []
  for (let at = 0; at < processes; at++) {
    const cutter = {
      NODE_OPTIONS: `--import=${path.join(import.meta.dirname, "ConnectionCutter.ts")}`,
      CUT_SEED: String(seed * processes + at),
      CUT_PER_MILLE: String(cutsPerMille),
    }
    started.push(await deployment.start([], { ...relaySettings(relayPort), ...cutter }))
  }
  return started
}

/** Creates a caller with an Identity, whose Events are delivered to `url`. */
const makeCaller = async (options: Omit<CallerOptions, "handle" | "identityKey">, session: string, url: string) => {
  const { base } = options.process()
  const { handle, secrets } = await makeIdentity(base, session, newHandle("cut"))
  const prepare = async (method: string, at: string, body: unknown) => {
    const { status } = await options.client.ask({ method, path: `/api/identities/${handle}${at}`, body })
    if (status >= 300) throw new Error(`${method} ${at} answered ${status}`)
  }
  await prepare("POST", "/allowed-recipients", { address: "grace@example.net" })
  await prepare("POST", "/webhooks", { url, event_types: ["*"] })
  if (options.isApproved) await prepare("PATCH", "/mail", { approval: "required" })
  return new Caller({ ...options, handle, identityKey: secrets.identity_key })
}

/** Waits until every message was sent and every delivery made. Attempts whose lease was lost wait a minute for its end. */
const settle = async (deployment: Deployment, findings: Findings) => {
  const waiting = () =>
    inStore(
      deployment,
      `select 'message' as what, attempts::text, attempt_started_at, next_attempt_at from outbox where next_attempt_at is not null
       union all
       select event_type, attempts::text, attempt_started_at, next_attempt_at from delivery where next_attempt_at is not null`,
    )
  const isDone = async () => (await waiting()).length === 0
  await until("the outcome of every message and delivery", isDone, 150).catch(async (error: unknown) =>
    findings.add(`${String(error)}: ${JSON.stringify(await waiting())}`),
  )
}

export const cutStore = async (): Promise<Row> => {
  const operations = Number(process.env["FAULTS_OPERATIONS"] ?? 400)
  const seed = Number(process.env["FAULTS_SEED"] ?? Math.floor(Math.random() * 1_000_000))
  const findings = new Findings()
  const effects = noEffects()
  const relay = await startCrashingRelay(() => "never")
  const receiver = await startReceiver()
  const deployment = await deploy({ postgres: {} })
  try {
    const services = await startProcesses(deployment, seed, relay.port)
    const toggleCuts = () => services.forEach((service) => service.signal("SIGUSR2"))
    let turn = 0
    const next = () => services[turn++ % services.length]!
    const { session } = await signUp(next().base)
    const client = new RepeatingClient(() => next().base, session, findings)
    const all = await Promise.all(
      Array.from({ length: callers }, (_, at) => {
        const options = {
          client,
          findings,
          effects,
          process: next,
          seed: seed * callers + at,
          isApproved: at % 3 === 0,
        }
        return makeCaller(options, session, receiver.url)
      }),
    )
    const handles = new Set(all.map(({ handle }) => handle))
    const compareRecords = await Aftermath.fromNow(client, findings, handles)
    const walks = all.map((caller) => {
      const mail = outgoing(caller)
      const resources = [mail, incoming(caller), identities(caller), ...settings.map((make) => make(caller))]
      return { caller, mail, resources, operations: resources.flatMap((one) => one.operations) }
    })

    toggleCuts()
    let done = 0
    const began = Date.now()
    await Promise.all(
      walks.map(async ({ caller, operations: own }) => {
        while (done < operations && findings.all.length < 20) {
          done++
          await caller.pick(own)!()
        }
      }),
    )
    const seconds = Math.round((Date.now() - began) / 1000)
    toggleCuts()

    await settle(deployment, findings)
    for (const { resources } of walks) for (const { compare } of resources) await compare()
    await compareRecords(effects, receiver.got)
    const sent = walks.flatMap(({ mail }) => [...mail.sent])
    Aftermath.compareCopies(findings, relay.copies, sent)
    return {
      id: "cut-store",
      ok: findings.all.length === 0,
      what: `${done} operations of ${callers} callers over ${processes} processes, while connections to PostgreSQL are cut at random`,
      figures: {
        seed,
        seconds,
        requests: client.requests,
        "repeated requests": client.repeats,
        "tool calls": client.toolCalls,
        "messages sent": relay.copies.length,
        deliveries: receiver.got.length,
        "deliveries made twice": receiver.got.length - new Set(receiver.got.map(({ body }) => body.id)).size,
        "effects with a record": [...effects.actions.values()].reduce((sum, count) => sum + count, 0),
        findings: findings.all.length,
      },
      details: findings.all.length === 0 ? [] : [...findings.all, `again with FAULTS_SEED=${seed}`],
    }
  } finally {
    relay.stop()
    await receiver.stop()
    await deployment.stop()
  }
}
