/** Messages larger than the driver's limit: read and exported. */
import { unzipSync } from "fflate"
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

it("a message over 16 MiB is readable unchanged, and does not break an export", async () => {
  const { handle } = await makeIdentity(service.base, session)
  for (const subject of ["large", "small"]) {
    await send(service.smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject, text: "x" })
  }
  await service.query(
    (sql) => sql`
      update message_content set raw = raw || convert_to(repeat(E'0123456789abcde\r\n', 1200000), 'UTF8')
      where message_id = (select id from message where summary ->> 'subject' = 'large')`,
  )
  const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages`, { token: session })
  const { id } = body.messages.find(({ subject }: { subject: string }) => subject === "large")
  const raw = await fetch(`${service.base}/api/identities/${handle}/messages/${id}/raw`, {
    headers: { authorization: `Bearer ${session}` },
  })
  expect((await raw.arrayBuffer()).byteLength).toBeGreaterThan(20_000_000)

  const response = await call(service.base, "POST", "/api/exports", { token: session, body: {} })
  expect(response.status).toBe(202)
  const ready = await eventually(
    () => call(service.base, "GET", `/api/exports/${response.body.id ?? response.body.export.id}`, { token: session }),
    ({ body: found }) => (found.export ?? found).status === "ready",
    30,
  )
  const warnings: Array<Error> = []
  const warned = (warning: Error) => void warnings.push(warning)
  process.on("warning", warned)
  const { download_url } = ready.body.export ?? ready.body
  const archive = await fetch(`${service.base}${download_url}`, { headers: { authorization: `Bearer ${session}` } })
  expect(archive.status).toBe(200)
  const members = unzipSync(new Uint8Array(await archive.arrayBuffer()))
  const mbox = Buffer.from(members[`${handle}.mbox`]!).toString()
  expect(mbox.length).toBeGreaterThan(19_000_000)
  process.off("warning", warned)
  expect(warnings).toEqual([])
  expect(mbox.match(/^Subject: (?:large|small)$/gm)).toEqual(["Subject: large", "Subject: small"])
  const pieces = await service.query(
    (sql) => sql<{ largest: number }>`select max(length(sealed)) as largest from export_piece`,
  )
  expect(pieces[0]!.largest).toBeLessThan(2 * 1024 * 1024)
})
