/** Tests of the bench itself: it counts wrong responses and reports unreliable figures. */
import { createServer } from "node:http"
import { createServer as createPlainServer, type AddressInfo, type Server } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { letter, type Order } from "./LoadOrder.ts"
import { drive } from "./LoadWorker.ts"
import { costOf, drift, type Figure, inTurn, type Measured, shareOf } from "./Turns.ts"
import * as Wrk from "./Wrk.ts"

const servers: Array<Server> = []
const listening = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    servers.push(server)
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  })
afterEach(() => servers.splice(0).forEach((server) => server.close()))

describe("load over raw sockets", () => {
  const seen: Array<string> = []
  let refused = 0
  const http = async (statuses: ReadonlyArray<number>) => {
    seen.length = 0
    refused = 0
    return listening(
      createServer((request, answer) => {
        let body = ""
        request.on("data", (chunk: Buffer) => (body += chunk.toString()))
        request.on("end", () => {
          seen.push(`${request.method} ${request.url} ${request.headers["x-name"]} ${body}`)
          answer.statusCode = statuses[seen.length % statuses.length]!
          if (answer.statusCode !== 200) refused++
          answer.end("an answer")
        })
      }),
    )
  }
  const order = (port: number, status?: number): Order => ({
    kind: "http",
    port,
    connections: 2,
    call: {
      method: "PUT",
      path: "/{worker}/{n}",
      headers: { "x-name": "ada" },
      body: "värde {n}",
      ...(status === undefined ? {} : { status }),
    },
  })

  it("sends the ordered requests one after the other on each connection", async () => {
    const load = await drive(order(await http([200])), 0.5)
    expect(load.wrong).toBe(0)
    expect(load.done).toBe(seen.length)
    for (const worker of [0, 1]) {
      const requests = seen.filter((one) => one.startsWith(`PUT /${worker}/`))
      expect(requests.length).toBeGreaterThan(0)
      expect(requests).toEqual(requests.map((_, n) => `PUT /${worker}/${n} ada värde ${n}`))
    }
  })

  it("counts responses with an unexpected status", async () => {
    const mixed = await drive(order(await http([200, 500])), 0.2)
    expect(mixed).toMatchObject({ done: seen.length, wrong: refused })
    expect((await drive(order(await http([404]), 404), 0.1)).wrong).toBe(0)
    expect((await drive(order(await http([200]), 404), 0.1)).wrong).toBe(seen.length)
  })

  it("counts accepted messages, and rejections as wrong", async () => {
    let letters = 0
    const smtp = (answer: string) =>
      listening(
        createPlainServer((socket) => {
          let text = ""
          socket.on("error", () => {})
          socket.write("220 ready\r\n")
          socket.on("data", (chunk: Buffer) => {
            text += chunk.toString()
            const inData = text.startsWith("From:")
            if (!text.endsWith(inData ? "\r\n.\r\n" : "\r\n")) return
            if (inData) letters++
            socket.write(inData ? answer : text.startsWith("DATA") ? "354 go on\r\n" : "250 ok\r\n")
            text = ""
          })
        }),
      )
    const mail = (port: number): Order => ({ kind: "smtp", port, connections: 2, recipients: ["ada@example.org"] })
    const taken = await drive(mail(await smtp("250 taken\r\n")), 0.2)
    expect(taken).toMatchObject({ done: letters, wrong: 0 })
    expect(await drive(mail(await smtp("451 later\r\n")), 0.1)).toMatchObject({ done: 0, wrong: 2 })
    expect(letter("ada@example.org", "1").length).toBeGreaterThan(5_000)
  })
})

describe.skipIf(Wrk.program === undefined)("wrk", () => {
  it("sends one Host header regardless of its spelling", async () => {
    const hosts: Array<ReadonlyArray<string>> = []
    const port = await listening(
      createServer((request, answer) => {
        hosts.push(request.headersDistinct["host"] ?? [])
        answer.end("an answer")
      }),
    )
    const call = { method: "GET", path: "/", headers: { host: "ada.example.org" } }
    await Wrk.drive(Wrk.program!, { kind: "http", port, connections: 1, call }, 1)
    expect(new Set(hosts.flat())).toEqual(new Set(["ada.example.org"]))
  })
})

describe("measuring in turn", () => {
  it("drives each subject once per round after all were warmed up", async () => {
    const order: Array<string> = []
    const subject = (name: string, rates: ReadonlyArray<number>) => {
      let at = 0
      return {
        drive: async () => {
          order.push(name)
          return { done: rates[Math.min(at++, rates.length - 1)]!, wrong: 0, seconds: 1, p50: 1, p99: 2 }
        },
      }
    }
    const got = await inTurn({ reference: subject("r", [10, 100]), ours: subject("o", [50]) }, { rounds: 2 })
    // The reference's first two slices differed, so a third one warmed it up.
    expect(order.join("")).toBe("rrroororo")
    expect(got.reference.perSecond).toEqual({ least: 100, median: 100, spread: 0 })
    expect(shareOf(got.ours, got.reference)).toBe(0.5)
    expect(got.ours.cpu).toBeUndefined()
  })

  it("fails if most responses are wrong", async () => {
    const refusing = { drive: async () => ({ done: 10, wrong: 6, seconds: 1, p50: 1, p99: 1 }) }
    await expect(inTurn({ refusing })).rejects.toThrow("6 of 10 answers were wrong")
  })

  const figure = (least: number, most: number): Figure => ({ least, median: most, spread: most / least - 1 })
  const measured = (cpu: Figure | undefined, perSecond: Figure): Measured => ({
    perSecond,
    cpu,
    postgres: undefined,
    p50: 1,
    p99: 1,
    wrong: 0,
    done: 1,
  })

  it("names the reference that drifted for each compared figure", () => {
    const steadyCpu = measured(figure(100, 114), figure(100, 200))
    expect(drift({ cpu: { floor: steadyCpu } })).toEqual([])
    expect(drift({ rate: { floor: steadyCpu } })).toEqual(["the slices of floor spread by 100 % (calls/s)"])
    expect(drift({ cpu: { floor: measured(figure(100, 120), figure(1, 1)) } })).toHaveLength(1)
  })

  it("compares minimum CPU times, and omits unknown ones", () => {
    const ours = measured(figure(400, 900), figure(1, 1))
    expect(costOf("CPU", ours, measured(figure(100, 200), figure(1, 1)), 4)).toEqual([
      { what: "CPU", value: 4, atMost: 4 },
    ])
    expect(costOf("CPU", ours, measured(undefined, figure(1, 1)), 4)).toEqual([])
  })
})
