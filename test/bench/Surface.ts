/** The rows of the wider surface: a durable write, and a tool call against the REST call it names. */
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { round, type Row } from "../harness/Report.ts"
import { inserts } from "./Http.ts"
import { fetchRaw, rate } from "./Throughput.ts"

const json = (token: string) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" })

export const write = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const base = service.base.replace("localhost", "127.0.0.1")
    const { session } = await signUp(service.base)
    const headers = json(session)
    const body = JSON.stringify({ value: "a value of some length, as secrets are" })
    const put = async (worker: number) => {
      const { status } = await fetchRaw(`${base}/api/vault/secrets/s${worker}`, { method: "PUT", headers, body })
      if (status !== 200 && status !== 201) throw new Error(`the write answered ${status}`)
    }
    const reference = await inserts(deployment, 32)
    const ours = await rate(32, 4, put)
    return {
      id: "write",
      ok: true,
      what: "durable PUT /api/vault/secrets/{name}, 32 connections, against one-row INSERTs",
      figures: {
        ratio: round(ours.perSecond / reference.perSecond),
        "ours/s": ours.perSecond,
        "inserts/s": reference.perSecond,
        "p99 ms": ours.p99,
      },
    }
  } finally {
    await deployment.stop()
  }
}

export const mcp = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const base = service.base.replace("localhost", "127.0.0.1")
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const headers = json(session)
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "svc_identity_get", arguments: { handle } },
    })
    const reference = await rate(32, 4, () => fetchRaw(`${base}/api/identities/${handle}`, { headers }))
    const ours = await rate(32, 4, () => fetchRaw(`${base}/api/mcp`, { method: "POST", headers, body }))
    return {
      id: "mcp",
      ok: true,
      what: "tools/call svc_identity_get, 32 connections, against GET /api/identities/{handle}",
      figures: {
        ratio: round(ours.perSecond / reference.perSecond),
        "calls/s": ours.perSecond,
        "reference/s": reference.perSecond,
      },
    }
  } finally {
    await deployment.stop()
  }
}
