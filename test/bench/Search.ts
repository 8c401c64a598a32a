/**
 * The search rows: rare, common and short words over HTTP, compared with a PostgreSQL scan of all messages in the
 * Mailbox, and lists of messages and threads in Mailboxes of the same size.
 */
import { inStore } from "../faults/Store.ts"
import { call, signUp } from "../harness/Client.ts"
import { deploy } from "../harness/Deployment.ts"
import { percentile, round, type Goal, type Row } from "../harness/Report.ts"
import { fill, searchTerms } from "./Mailboxes.ts"

const times = 15

const medianOf = async (run: () => Promise<unknown>, count = times): Promise<number> => {
  const took: Array<number> = []
  for (let n = 0; n < count; n++) {
    const start = performance.now()
    await run()
    // The first searches plan their statements and warm caches.
    if (n >= count / 3) took.push(performance.now() - start)
  }
  return round(percentile(took, 0.5), 1)
}

/** Measures `boxes` Mailboxes of `each` messages. */
const measured = async (id: string, boxes: number, each: number): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start([], { SVC_IDENTITY_QUOTA: "100000", SVC_MAILBOX_BYTES: "1000000000000" })
    const { session: token } = await signUp(service.base)
    const handles = await fill(deployment, service.base, token, boxes, each)
    const handle = handles[0]!
    const figures: Record<string, number> = {}
    const goals: Array<Goal> = []
    let right = true
    const get = async (path: string, holds: (body: any) => boolean) => {
      const { status, body } = await call(service.base, "GET", `/api/identities/${handle}${path}`, { token })
      if (status !== 200 || !holds(body)) right = false
    }
    const search = (word: string, holds: (body: any) => boolean) =>
      get(`/messages?query=${encodeURIComponent(word)}`, holds)
    const full = (body: any) => body.messages.length === Math.min(50, each)
    const found = (count: number) => (body: any) => body.messages.length === Math.min(50, count)
    // Scans all messages of the Mailbox over one connection, as a search without an index would.
    const scan = await medianOf(
      () =>
        inStore(
          deployment,
          `select count(*) from message m join message_content c on c.message_id = m.id
           where m.identity_id = (select id from bench_box where place = 0) and strpos(c.search_text, '${searchTerms.rare}') > 0`,
        ),
      6,
    )
    figures["scan ms"] = scan
    for (const [name, word, holds] of [
      ["rare", searchTerms.rare, found(2)],
      ["seldom", searchTerms.seldom, found(Math.floor(each / 200))],
      ["common", searchTerms.common, found(Math.floor(each / 4))],
      ["rare and common", `${searchTerms.rare} ${searchTerms.common}`, found(0)],
    ] as const) {
      const value = await medianOf(() => search(word, holds))
      goals.push({ what: `${name} ms`, value, atMost: 20 })
    }
    const all = async (word: string) => {
      let cursor = ""
      let count = 0
      do {
        const query = `query=${encodeURIComponent(word)}${cursor === "" ? "" : `&cursor=${cursor}`}`
        const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages?${query}`, { token })
        count += body.messages.length
        cursor = body.next_cursor ?? ""
      } while (cursor !== "" && count === 0)
      if (count === 0) right = false
    }
    goals.push({
      what: "two common characters, to scan",
      value: round((await medianOf(() => search(searchTerms.two, () => true))) / scan),
      atMost: 1,
    })
    goals.push({
      what: "two rare characters, to scan",
      value: round((await medianOf(() => all(searchTerms.twoRare), 6)) / scan),
      atMost: 1,
    })
    figures["list ms"] = await medianOf(() => get("/messages", full))
    figures["unread ms"] = await medianOf(() => get("/messages?seen=false", full))
    figures["threads ms"] = await medianOf(() => get("/threads", (body) => body.threads.length === Math.min(50, each)))
    const [size] = await inStore<{ index: number; rest: number }>(
      deployment,
      `select (pg_total_relation_size('search_segment') / 1048576)::int as index,
              ((pg_total_relation_size('message_content') + pg_total_relation_size('message')) / 1048576)::int as rest`,
    )
    figures["index MB"] = size!.index
    figures["all MB"] = size!.rest
    return {
      id,
      ok: right,
      what: `search over HTTP in one of ${boxes} Mailboxes of ${each.toLocaleString("en")} messages, compared with a scan of each`,
      goals,
      figures,
    }
  } finally {
    await deployment.stop()
  }
}

export const search = () => measured("search", 1, 25_000)
/** A million messages, which take five minutes to write and 16 GB of disk; runs only if it is named. */
export const searchMillion = () => measured("search-million", 1_000, 1_000)
