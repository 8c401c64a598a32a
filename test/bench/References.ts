/** The reference servers: minimal processes, each on a port that it prints. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as path from "node:path"
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Exit, Layer, Scope } from "effect"
import { settingsOf } from "../faults/Store.ts"
import type { Deployment } from "../harness/Deployment.ts"
import { type Drive, work } from "./Load.ts"

export interface Reference {
  readonly port: number
  readonly pid: number
  readonly stop: () => void
}

export const started = async (...arguments_: ReadonlyArray<string>): Promise<Reference> => {
  const child = spawn(process.execPath, arguments_, { stdio: ["ignore", "pipe", "inherit"] })
  const [port] = (await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => Promise.reject(new Error(`${arguments_.at(-1)} ended`))),
  ])) as [Buffer]
  return { port: Number(port.toString()), pid: child.pid!, stop: () => child.kill() }
}

const sibling = (name: string) => path.join(import.meta.dirname, name)

export const floor = () => started(sibling("Floor.ts"))

export const echo = () => started(sibling("EchoServer.ts"))

/** Node's own HTTP server, answering every request with the same bytes. */
export const bareHttp = (body: string) =>
  started(
    "-e",
    `const body = ${JSON.stringify(body)}
     require("node:http").createServer((q, r) => { r.setHeader("content-type", "application/json"); r.end(body) })
       .listen(0, "127.0.0.1", function () { console.log(this.address().port) })`,
  )

/** The SMTP library that the service uses, which reads and discards messages. */
export const bareSmtp = () =>
  started(
    "-e",
    `const { SMTPServer } = require("smtp-server")
     const s = new SMTPServer({ authOptional: true, disabledCommands: ["AUTH", "STARTTLS"], disableReverseLookup: true, logger: false,
       onData(stream, session, done) { stream.resume(); stream.on("end", () => done()) } })
     s.listen(0, "127.0.0.1", () => console.log(s.server.address().port))`,
  )

export interface Inserts {
  readonly drive: Drive
  readonly postmaster: number
  readonly close: () => Promise<void>
}

/** Runs one-row INSERTs with the service's database client, with that many in flight. */
export const inserts = async (deployment: Deployment, width: number): Promise<Inserts> => {
  const scope = Scope.makeUnsafe()
  const context = await Effect.runPromise(
    Layer.buildWithScope(Layer.fresh(Stores.layer(settingsOf(deployment))), scope),
  )
  const run = Effect.runPromiseWith(context)
  const sql = await run(Effect.service(Stores.Writes))
  await run(
    sql`create table if not exists bench_row (id bigint generated always as identity primary key, text text not null)`,
  )
  return {
    drive: work(width, () => run(sql`insert into bench_row (text) values ('a row as short as they come')`)),
    postmaster: deployment.postgres(),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}
