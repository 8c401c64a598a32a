/** Output of commands for people and programs: columns of lists, errors as JSON, and usage errors. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { tools } from "@svc/api/mcp/Tools"
import { commands } from "@svc/cli/tools/Commands"
import { pretty } from "@svc/cli/tools/Print"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { runHere } from "../harness/Commands.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON Schema
type Json = any

let service: TestService
let session: string
let home: string
let ada: Awaited<ReturnType<typeof makeIdentity>>
let bob: Awaited<ReturnType<typeof makeIdentity>>
beforeAll(async () => {
  home = mkdtempSync(path.join(tmpdir(), "svc-answers-"))
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
  bob = await makeIdentity(service.base, session)
  const body = { address: bob.identity.email }
  await call(service.base, "POST", `/api/identities/${ada.handle}/allowed-recipients`, { token: session, body })
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
})

const svc = (...words: ReadonlyArray<string>) =>
  runHere({ home, env: { SVC_API_URL: service.base, SVC_KEY: session } }, ...words)
/** Returns the words of the first line. */
const header = (text: string) => text.split("\n")[0]!.split(/ {2,}/)

describe("the help", () => {
  it("describes every noun, and names commands instead of tools", () => {
    for (const { name, description, subcommands } of commands) {
      expect(description, name).toMatch(/^[A-Z].{12,}\.$/)
      for (const command of subcommands.flatMap((group) => group.commands)) {
        expect(command.description, `${name} ${command.name}`).not.toMatch(/svc_/)
      }
    }
  })
})

describe("svc vault --help", () => {
  it("succeeds", async () => {
    const { code, out } = await svc("vault", "--help")
    expect([code, out]).toEqual([0, expect.stringContaining("svc vault")])
  })
})

describe("a table", () => {
  it("shows date, sender, recipients and subject of mail", async () => {
    expect(
      (await svc("email", "send", ada.handle, bob.identity.email, "--subject", "Hello Bob", "--text", "x")).code,
    ).toBe(0)
    const { out } = await eventually(
      () => svc("email", "list", bob.handle),
      ({ out }) => out.includes("Hello Bob"),
    )
    expect(header(out)).toEqual(["ID", "RECEIVED_AT", "DIRECTION", "FROM", "TO", "SUBJECT", "SEEN"])
    expect(out.split("\n")[1]).toMatch(
      new RegExp(
        `^msg_\\w{26}  \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ  inbound .*${ada.identity.email} .*Hello Bob +no$`,
      ),
    )
    const thread = await svc("thread", "list", bob.handle)
    expect(header(thread.out)).toEqual(["ID", "LAST_MESSAGE_AT", "PARTICIPANTS", "SUBJECT", "MESSAGES", "UNREAD"])
  })

  it("describes each Event in a sentence with names", async () => {
    const { out } = await svc("event", "list")
    expect(header(out)).toEqual(["ID", "CREATED_AT", "WHAT"])
    expect(out).toContain(`${bob.handle} received an email from ${ada.identity.email}: Hello Bob`)
    expect((await svc("identity", "events", ada.handle)).out).toContain(`${ada.handle} is ready`)
  })

  it("has columns for every tool that exist in its entries", () => {
    const entriesOf = ({ anyOf: [success] }: Json): Json =>
      Object.values<Json>(success.properties).find(({ type, items }) => type === "array" && items?.properties)?.items
    for (const { listed, columns } of tools) {
      const entry = listed.annotations.readOnlyHint ? entriesOf(listed.outputSchema) : undefined
      const isList = /_(?:list|wait|deliveries|events|posts|thread|notifications)$/.test(listed.name)
      if (isList) expect(columns, listed.name).toBeDefined()
      for (const column of columns ?? []) {
        if (column === "what") continue
        const found = column.split(".").reduce<Json>((node, name) => {
          const plain = node?.anyOf?.find(({ type }: Json) => type === "object") ?? node
          return plain?.properties?.[name]
        }, entry)
        expect(found, `${listed.name} ${column}`).toBeDefined()
      }
    }
  })

  it("shows the first of several addresses and the number of others, and never truncates an id", () => {
    const id = `msg_${"0".repeat(26)}`
    const to = ["a@x.example", "b@x.example", "c@x.example"].map((address) => ({ address, name: null }))
    const entry = {
      id,
      to,
      attachments: [{ index: 0 }, { index: 1 }],
      seen: true,
      at: "2026-11-20T12:00:00.123Z",
      none: [],
    }
    expect(pretty({ messages: [entry] }, ["id", "to", "attachments", "seen", "at", "none", "deep.missing"])).toBe(
      `${["ID".padEnd(30), "TO".padEnd(14), "ATTACHMENTS", "SEEN", "AT".padEnd(20), "NONE", "MISSING"].join("  ")}\n` +
        [id, "a@x.example +2", "2".padEnd(11), "yes ", "2026-11-20 12:00:00Z", "-   ", "-"].join("  "),
    )
  })

  it("shows series as one table, with a line for each time and a column for each series that has values", () => {
    const on = (day: number, value: number) => ({ at: `2026-11-${day}T00:00:00.000Z`, value })
    const series = [
      { metric: "mail_sent", identity: "ada", points: [on(20, 3), on(21, 4)] },
      { metric: "mail_received", identity: "ada", points: [] },
      { metric: "deliveries_failed", identity: "ada", webhook_id: "wh_1", points: [on(19, 7)] },
      { metric: "activity", identity: "ada", points: [on(20, 8)] },
    ]
    expect(pretty({ step: "day", series }).split("\n")).toEqual([
      "step: day",
      "AT                    MAIL_SENT  DELIVERIES_FAILED WH_1  ACTIVITY ADA",
      "2026-11-19 00:00:00Z  -          7                       -",
      "2026-11-20 00:00:00Z  3          -                       8",
      "2026-11-21 00:00:00Z  4          -                       -",
    ])
    expect(pretty({ step: "day", series: [series[1]] })).toBe("step: day\nThere was no activity.")
  })
})

describe("--json", () => {
  it("prints a problem as JSON to standard error", async () => {
    const { code, out, errors } = await svc("identity", "get", "nobody-here", "--json")
    expect([code, out]).toEqual([1, ""])
    expect(JSON.parse(errors)).toMatchObject({ code: "not_found", status: 404, agent_hint: "fix_call" })
  })

  it.each([
    [["email", "list", "--json"], 2, "usage"],
    [["event", "list", "--limit", "x", "--json"], 2, "usage"],
    [["vault", "set", "x", "--json"], 2, "usage"],
    [["keys", "list", "--api", "http://127.0.0.1:1", "--json"], 3, "out_of_reach"],
    [["audit", "--since", "never", "--json"], 2, "usage"],
  ] as const)("prints the error of %j as JSON", async (words, code, name) => {
    const ran = await svc(...words)
    expect([ran.code, ran.out]).toEqual([code, ""])
    expect(JSON.parse(ran.errors)).toMatchObject({
      code: name,
      detail: expect.any(String),
      agent_hint: expect.any(String),
    })
  })

  it("prints a missing login as JSON", async () => {
    const { code, errors } = await runHere({ home, env: { SVC_API_URL: service.base } }, "whoami", "--json")
    expect([code, JSON.parse(errors).code]).toEqual([2, "not_logged_in"])
  })
})

describe("a usage error", () => {
  it.each([
    [["email", "list"], "Missing required argument: handle"],
    [["email", "list", "ada", "--bogus"], "--bogus"],
    [["email", "list", "ada", "--limit", "many"], "many"],
    [["nonsense"], "nonsense"],
    [["keys", "create"], "Missing required argument: name"],
  ] as const)("%j prints one line with the usage to standard error and exits with 2", async (words, what) => {
    const { code, out, errors } = await runHere({ home }, ...words)
    expect([code, out]).toEqual([2, ""])
    expect(errors).toMatch(/^svc: [^\n]+ Usage: svc [^\n]+ --help` says more\.\n$/)
    expect(errors).toContain(what)
  })
})
