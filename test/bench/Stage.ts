/**
 * The shared processes of the single-call rows: references, the service and optionally the service of an earlier
 * commit. Started on first use and stopped before a row that needs the machine for itself.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process } from "../harness/Deployment.ts"
import { message, session } from "./Letters.ts"
import type { Call, Drive } from "./Load.ts"
import * as Load from "./Load.ts"
import * as References from "./References.ts"
import * as Statements from "./Statements.ts"
import type { Subject } from "./Turns.ts"

export const connections = 32
const identities = 10
/** Number of messages in the first Identity's Mailbox. */
const letters = 20

/** A service with an Org, a key and ready Identities; the calls concern the first one. */
export interface BenchService {
  readonly deployment: Deployment
  readonly service: Process
  readonly key: string
  readonly handles: ReadonlyArray<string>
}

export interface Stage {
  readonly floor: Subject
  readonly bare: Subject
  readonly ours: BenchService
  readonly earlier: BenchService | undefined
}

export const httpPort = ({ base }: Process) => Number(new URL(base).port)

/** Returns the load of a call with the key of the Org. */
export const callWithKey = ({ service, key }: BenchService, { headers, ...one }: Call): Drive =>
  Load.http(
    httpPort(service),
    {
      ...one,
      headers: {
        authorization: `Bearer ${key}`,
        ...(one.body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
    },
    connections,
  )

export const subjectOf = ({ deployment, service }: BenchService, drive: Drive): Subject => ({
  drive,
  pid: service.child.pid!,
  postmaster: deployment.postgres(),
})

const root = path.join(import.meta.dirname, "..", "..")

/** Checks out an earlier commit into its own folder, with the packages that are installed here. */
export const checkout = (commit: string) => {
  const tree = mkdtempSync(path.join(os.tmpdir(), "svc-bench-tree-"))
  execFileSync("git", ["worktree", "add", "--detach", "--force", tree, commit], { cwd: root, stdio: "ignore" })
  mkdirSync(path.join(tree, "node_modules", "@svc"), { recursive: true })
  const link = (to: string, ...name: ReadonlyArray<string>) => symlinkSync(to, path.join(tree, "node_modules", ...name))
  for (const name of readdirSync(path.join(root, "node_modules"))) {
    if (name !== "@svc" && name !== ".cache") link(path.join(root, "node_modules", name), name)
  }
  for (const name of readdirSync(path.join(root, "node_modules", "@svc"))) {
    const inside = path.join(tree, "packages", name)
    link(existsSync(inside) ? inside : path.join(tree, name), "@svc", name)
  }
  return {
    tree,
    remove: () => {
      rmSync(tree, { recursive: true, force: true })
      execFileSync("git", ["worktree", "prune"], { cwd: root, stdio: "ignore" })
    },
  }
}

const play = async (ending: Array<() => unknown>, tree?: string): Promise<BenchService> => {
  const deployment = await deploy({
    postgres: Statements.settings,
    ...(tree === undefined ? {} : { checkout: tree }),
  })
  ending.push(deployment.stop)
  await Statements.prepare(deployment)
  const service = await deployment.start()
  const { session: token } = await signUp(service.base)
  const { body } = await call<{ readonly key: string }>(service.base, "POST", "/api/keys", {
    token,
    body: { name: "bench" },
  })
  const made = await Promise.all(Array.from({ length: identities }, () => makeIdentity(service.base, body.key)))
  const handles = made.map(({ handle }) => handle)
  const to = `${handles[0]}@mail.localhost`
  const sender = await session(service.smtpPort)
  for (let i = 0; i < letters; i++) await sender.send(to, message(to))
  sender.close()
  return { deployment, service, key: body.key, handles }
}

let current: { readonly stage: Stage; readonly ending: ReadonlyArray<() => unknown> } | undefined

export const stage = async (against: string | undefined): Promise<Stage> => {
  if (current !== undefined) return current.stage
  const ending: Array<() => unknown> = []
  try {
    const floor = await References.floor()
    ending.push(floor.stop)
    const ours = await play(ending)
    const { body } = await call(ours.service.base, "GET", `/api/identities/${ours.handles[0]}`, { token: ours.key })
    const bare = await References.bareHttp(JSON.stringify(body))
    ending.push(bare.stop)
    let earlier: BenchService | undefined
    if (against !== undefined) {
      const { tree, remove } = checkout(against)
      ending.unshift(remove)
      earlier = await play(ending, tree)
    }
    const get = (port: number): Drive =>
      Load.http(
        port,
        { method: "GET", path: `/api/identities/${ours.handles[0]}`, headers: { authorization: `Bearer ${ours.key}` } },
        connections,
      )
    const made = {
      floor: { drive: get(floor.port), pid: floor.pid },
      bare: { drive: get(bare.port), pid: bare.pid },
      ours,
      earlier,
    }
    current = { stage: made, ending }
    return made
  } catch (error) {
    for (const end of ending.toReversed()) await end()
    throw error
  }
}

export const stopStage = async (): Promise<void> => {
  const { ending } = current ?? { ending: [] }
  current = undefined
  for (const end of ending.toReversed()) await end()
}
