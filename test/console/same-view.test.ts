/**
 * Two browsers show one Mailbox while senders, an agent's API calls, a mail program and both browsers change it at random.
 * After each change, both have to show what the service has.
 *
 * `SAME_VIEW_SECONDS=600 SAME_VIEW_SEED=7 npm test -- test/console/same-view` runs it for longer and prints how long the
 * changes took to appear.
 */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startConsoleMail } from "../harness/ConsoleMail.ts"
import { ImapClient } from "../harness/Imap.ts"
import { send } from "../harness/Mail.ts"
import { has } from "../harness/Programs.ts"

const seconds = Number(process.env["SAME_VIEW_SECONDS"] ?? 8)
const seed = Number(process.env["SAME_VIEW_SEED"] ?? 1)
/** Time in milliseconds until a change has to be shown; the machine may be busy. */
const shownWithin = 10_000

/** Returns random numbers below `most` (mulberry32). */
const random = (state: number) => (most: number) => {
  state = (state + 0x6d2b79f5) | 0
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * most)
}

interface Message {
  readonly id: string
  readonly subject: string
  readonly seen: boolean
  readonly flagged: boolean
  readonly labels: ReadonlyArray<string>
}
interface Thread {
  readonly id: string
  readonly subject: string
  readonly unread: number
  readonly messages: number
}

/** A page of the Mailbox: its address, and what it shows as lines of text, by the service and by the document. */
interface View {
  readonly path: string
  readonly truth: (get: (path: string) => Promise<any>) => Promise<ReadonlyArray<string>>
}

/** Reads the rows of a list: what the document says about each. */
const rowsOf = (page: Page) =>
  page.evaluate<ReadonlyArray<string>>(`[...document.querySelectorAll(".mails > li:not(.hidden-rows)")].map((row) => {
    const count = row.querySelector(".count")?.textContent.match(/\\d+/)?.[0] ?? ""
    return [row.querySelector(".subject").textContent, "unread" in row.dataset ? "unread" : "", count,
      row.querySelector("[title=Flagged]") === null ? "" : "flagged",
      ...[...row.querySelectorAll(".tag")].map((tag) => tag.textContent)].filter((part) => part !== "").join(" ")
  })`)

const messageLine = ({ subject, seen, flagged, labels }: Message) =>
  [subject, seen ? "" : "unread", flagged ? "flagged" : "", ...labels.slice(0, 2)]
    .filter((part) => part !== "")
    .join(" ")
const threadLine = ({ subject, unread }: Thread) =>
  [subject, ...(unread > 0 ? ["unread", String(unread)] : [])].join(" ")

const views: ReadonlyArray<View> = [
  {
    path: "mail?direction=inbound",
    truth: async (get) => (await get("messages?limit=50&direction=inbound")).messages.map(messageLine),
  },
  { path: "mail", truth: async (get) => (await get("threads?limit=50&archived=false")).threads.map(threadLine) },
  {
    path: "mail?archived=1",
    truth: async (get) => (await get("threads?limit=50&archived=true")).threads.map(threadLine),
  },
  {
    path: "mail/drafts",
    truth: async (get) =>
      (await get("drafts?limit=100")).drafts
        .toSorted((one: { updated_at: string }, other: { updated_at: string }) =>
          other.updated_at.localeCompare(one.updated_at),
        )
        .map(({ subject }: { subject: string }) => subject),
  },
]

describe.skipIf(!has("chromium"))("Two browsers on one Mailbox", { timeout: 60_000 + seconds * 4_000 }, () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  it("show the same after each change by senders, the API, a mail program and each other", async () => {
    const below = random(seed)
    const pick = <A>(all: ReadonlyArray<A>): A => all[below(all.length)]!
    const { handle, secrets } = await mail.agent()
    const key = secrets.identity_key as string
    const agent = async (method: string, path: string, body?: unknown) => {
      const answer = await mail.api(method, `${handle}/${path}`, body, key)
      expect([200, 201, 202, 204, 404]).toContain(answer.status)
      return answer.body
    }
    const get = async (path: string) => (await mail.api("GET", `${handle}/${path}`)).body
    const messages = async (): Promise<ReadonlyArray<Message>> =>
      (await get("messages?limit=50&direction=inbound")).messages
    const imap = await ImapClient.login(mail.service.imapPort, handle, key)
    await imap.say("SELECT INBOX")

    let sent = 0
    const arrive = async () => {
      const before = (await messages()).length
      const number = ++sent
      await send(mail.service.smtpPort, {
        from: "Grace <grace@example.org>",
        to: `${handle}@mail.localhost`,
        subject: number > 3 && below(3) === 0 ? `Re: Subject ${1 + below(number - 1)}` : `Subject ${number}`,
        text: "x",
      })
      while ((await messages()).length === before && before < 50)
        await new Promise((resolve) => setTimeout(resolve, 10))
    }
    for (let at = 0; at < 8; at++) await arrive()

    const browsers = await Promise.all(
      [views[0]!, views[1]!].map(async (view) => ({ ...(await mail.open(`${handle}/${view.path}`)), view })),
    )
    for (const { page } of browsers) await page.locator(".connection").getByText("Live", { exact: true }).waitFor()

    const some = async () => pick(await messages())
    const store = async (flags: string) => {
      await imap.say("NOOP")
      await imap.say(`STORE ${1 + below(Math.max(1, (await messages()).length))} ${flags}`)
    }
    const changes: Readonly<Record<string, () => Promise<unknown>>> = {
      "mail arrives": arrive,
      "the agent marks": async () => agent("PATCH", `messages/${(await some()).id}`, { seen: below(2) === 0 }),
      "the agent flags": async () => agent("PATCH", `messages/${(await some()).id}`, { flagged: below(2) === 0 }),
      "the agent labels": async () =>
        agent("PATCH", `messages/${(await some()).id}`, {
          labels: below(2) === 0 ? [pick(["one", "two", "archived"])] : [],
        }),
      "the agent deletes": async () => agent("DELETE", `messages/${(await some()).id}`),
      "the agent changes several": async () =>
        agent("PATCH", "messages", { ids: (await messages()).slice(0, 5).map(({ id }) => id), seen: below(2) === 0 }),
      "the agent writes a draft": () => agent("POST", "drafts", { subject: `Draft ${below(1000)}` }),
      "the agent deletes a draft": async () => {
        const { drafts } = await get("drafts?limit=100")
        if (drafts.length > 0) await agent("DELETE", `drafts/${pick<{ id: string }>(drafts).id}`)
      },
      "a mail program marks": () => store(pick(["+FLAGS (\\Seen)", "-FLAGS (\\Seen)"])),
      "a mail program flags": () => store(pick(["+FLAGS (\\Flagged)", "-FLAGS (\\Flagged)"])),
      "a mail program expunges": async () => {
        await store("+FLAGS (\\Deleted)")
        await imap.say("EXPUNGE")
      },
      "a mail program archives": async () => {
        await imap.say("NOOP")
        await imap.say("MOVE 1 Archive")
      },
      "a mail program appends": async () => {
        const text = `From: a@example.org\r\nSubject: Appended ${below(1000)}\r\n\r\nx\r\n`
        await imap.say(`APPEND INBOX {${text.length}+}\r\n${text}`)
      },
      "a browser marks": async () => {
        const { page } = pick(browsers)
        const box = page.locator(".mails input[type=checkbox]").first()
        if ((await box.count()) === 0) return
        await box.check({ timeout: 2_000 }).catch(() => undefined)
        await page.keyboard.press("u")
      },
      "a browser archives": async () => {
        const { page } = pick(browsers)
        const box = page.locator(".mails input[type=checkbox]").last()
        if ((await box.count()) === 0) return
        await box.check({ timeout: 2_000 }).catch(() => undefined)
        await page.keyboard.press("e")
      },
      "a browser opens another list": async () => {
        const browser = pick(browsers)
        browser.view = pick(views)
        await browser.page.evaluate(
          `history.pushState(null, "", ${JSON.stringify(`/console/identities/${handle}/${browser.view.path}`)}); dispatchEvent(new PopStateEvent("popstate"))`,
        )
      },
    }

    const delays: Array<readonly [millis: number, change: string]> = []
    const until = Date.now() + seconds * 1000
    while (Date.now() < until) {
      const change = pick(Object.keys(changes))
      await changes[change]!()
      const began = performance.now()
      for (const { page, view } of browsers) {
        for (;;) {
          const [shown, truth] = [await rowsOf(page), await view.truth(get)]
          if (JSON.stringify(shown.slice(0, 25)) === JSON.stringify(truth.slice(0, 25))) break
          if (performance.now() - began > shownWithin)
            expect(shown, `${view.path} after ${delays.length} changes, the last of which was: ${change}`).toEqual(
              truth,
            )
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
      delays.push([Math.round(performance.now() - began), change])
      if ((await messages()).length < 3) await arrive()
    }
    const sorted = delays.toSorted(([one], [other]) => other - one)
    if (seconds > 30)
      console.log(
        `${delays.length} changes; shown after ${sorted[Math.floor(sorted.length / 2)]?.[0]} ms (median), ${sorted[Math.floor(sorted.length / 20)]?.[0]} ms (95 %); longest: ${JSON.stringify(sorted.slice(0, 5))}`,
      )
    expect(delays.length).toBeGreaterThan(3)
    for (const { seen } of browsers) expect(seen).toEqual({ errors: [], foreign: [] })
    await imap.close()
    for (const { context } of browsers) await context.close()
  })
})
