/** `GET /api/usage` over HTTP: spans, refusals, and whose usage a credential reads. */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session = ""
let ada: Awaited<ReturnType<typeof makeIdentity>>
let bob: Awaited<ReturnType<typeof makeIdentity>>

beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
  bob = await makeIdentity(service.base, session)
  // One message an hour for each of the last 30 days.
  await service.query(
    (sql) => sql`
      insert into usage_hour (org_id, identity_id, hour, kind, count, failed, bytes_in, bytes_out)
      select i.org_id, case when part = 1 then i.id end, hour, 'mail_received', 1, 0, 0, 0
      from identity i, generate_series(1, 2) as part,
           generate_series('2026-03-01Z'::timestamptz, '2026-03-30 23:00Z', interval '1 hour') as hour
      where i.handle = ${ada.handle} returning 1`,
  )
})

const read = (query: string, token = session) => call(service.base, "GET", `/api/usage?${query}`, { token })
const seriesOf = ({ body }: Awaited<ReturnType<typeof read>>, metric: string) =>
  body.series.filter((one: any) => one.metric === metric)
const pointsOf = (response: Awaited<ReturnType<typeof read>>) =>
  response.body.series.flatMap(({ points }: any) => points)
const march = "from=2026-03-01&to=2026-03-31"

describe("GET /api/usage", () => {
  it("sums days and hours of the account and of an Identity", async () => {
    const days = await read(march)
    expect(days.status).toBe(200)
    expect(days.body).toMatchObject({
      starts_at: "2026-03-01T00:00:00.000Z",
      ends_at: "2026-03-31T00:00:00.000Z",
      step: "day",
    })
    const received = seriesOf(days, "mail_received")
    expect(received).toEqual([{ metric: "mail_received", points: expect.any(Array) }])
    expect(received[0].points).toHaveLength(30)
    expect(received[0].points[0]).toEqual({ at: "2026-03-01T00:00:00.000Z", value: 24 })
    expect(seriesOf(days, "mail_sent")).toEqual([{ metric: "mail_sent", points: [] }])
    expect(seriesOf(days, "activity")).toEqual([])
    const hours = await read(`${march}&step=hour&identity=${ada.handle}`)
    expect(seriesOf(hours, "mail_received")).toMatchObject([{ identity: ada.handle }])
    expect(pointsOf(hours)).toHaveLength(720)
    expect(pointsOf(await read(`${march}&identity=${bob.handle}`))).toEqual([])
    const activity = seriesOf(await read(`${march}&by=identity`), "activity")
    expect(activity).toMatchObject([{ identity: ada.handle }])
    expect(activity[0].points).toHaveLength(30)
    expect(activity[0].points[0]).toEqual({ at: "2026-03-01T00:00:00.000Z", value: 24 })
  })

  it("rounds the span to whole steps", async () => {
    const hours = await read("from=2026-03-05T10:30:00Z&to=2026-03-05T12:00:00.001Z&step=hour")
    const { body } = hours
    expect([body.starts_at, body.ends_at]).toEqual(["2026-03-05T10:00:00.000Z", "2026-03-05T13:00:00.000Z"])
    expect(pointsOf(hours)).toHaveLength(3)
  })

  it("covers 30 days or 24 hours without `from`, up to the current one", async () => {
    for (const [step, millis] of [
      ["day", 30 * 86_400_000],
      ["hour", 24 * 3_600_000],
    ] as const) {
      const { body } = await read(`step=${step}`)
      expect(Date.parse(body.ends_at) - Date.parse(body.starts_at)).toBe(millis)
    }
  })

  it("rejects a span that is empty or has more than 750 steps", async () => {
    for (const query of ["from=2026-03-02&to=2026-03-02", "from=2026-02-27T17:00:00Z&to=2026-03-31&step=hour"]) {
      expect(await read(query)).toMatchObject({
        status: 400,
        body: { code: "invalid_request", errors: [{ path: "/from" }] },
      })
    }
    expect((await read("from=2026-02-27T18:00:00Z&to=2026-03-31&step=hour")).status).toBe(200)
  })

  it("shows an Identity Key its own Identity only, and another account nothing", async () => {
    const key = bob.secrets.identity_key
    expect(pointsOf(await read(march, key))).toEqual([])
    expect(seriesOf(await read(`${march}&by=identity`, key), "activity")).toEqual([])
    expect((await read(`${march}&identity=${ada.handle}`, key)).status).toBe(403)
    expect(pointsOf(await read(march, ada.secrets.identity_key))).toHaveLength(30)
    const stranger = (await signUp(service.base)).session
    expect(pointsOf(await read(march, stranger))).toEqual([])
    expect((await read(`${march}&identity=${ada.handle}`, stranger)).status).toBe(404)
  })

  it("counts API calls", async () => {
    const { session, org } = await signUp(service.base)
    await call(service.base, "GET", "/api/identities", { token: session })
    const stored = () =>
      service.query<{ n: number }>(
        (sql) => sql`select coalesce(sum(count), 0)::int as n from usage_hour where kind = 'call'
          and org_id = (select id from org where email = ${org.email})`,
      )
    await expect.poll(stored).toEqual([{ n: 1 }])
    // Reading the Identity until it was ready are calls of the Identity.
    const calls = (identity: string) =>
      service.query<{ n: number }>(
        (sql) => sql`select coalesce(sum(count), 0)::int as n from usage_hour where kind = 'call'
          and identity_id = (select id from identity where handle = ${identity})`,
      )
    await expect.poll(async () => (await calls(ada.handle))[0]!.n).toBeGreaterThan(0)
  })
})
