/**
 * Bounds tool results that could fill a model's context: a message or a conversation returns at most 16 KiB of content.
 * `truncated` says whether something is missing, `left_out` what is missing and how to read it.
 */
import { encode, slice } from "../mail/TextSlice.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON
type Json = Record<string, any>

/** The maximum content of one result in bytes. */
export const contentBytes = 16 * 1024
/** The limit for HTML, links and headers unless `part` selects them: next to the text they rarely add anything. */
const htmlBytes = 4 * 1024
const entriesBytes = 2 * 1024
/** The maximum of addresses, references or attachments per list. */
const listedAtMost = 25

const parts = ["text", "html", "links", "headers"] as const
type Part = (typeof parts)[number]

const ofMessage: Json = {
  part: {
    type: "string",
    enum: parts,
    description: "Returns only this part. Reading starts at `text_offset`.",
  },
  text_offset: {
    type: "integer",
    minimum: 0,
    default: 0,
    description: "The byte offset as `left_out` gives it. Without `part` it counts in the text.",
  },
  text_limit: {
    type: "integer",
    minimum: 1,
    default: contentBytes,
    description: `The maximum content in bytes, at most ${contentBytes}.`,
  },
  html: { type: "boolean", default: true, description: "False omits the HTML." },
  headers: { type: "boolean", default: true, description: "False omits the header fields." },
}

const truncation: Json = {
  truncated: { type: "boolean" },
  left_out: {
    type: "array",
    items: {
      type: "object",
      properties: { member: { type: "string" }, bytes: { type: "integer" }, how: { type: "string" } },
      required: ["member", "bytes", "how"],
    },
  },
}

interface LeftOut {
  readonly member: string
  /** The size of the missing part. */
  readonly bytes: number
  readonly how: string
}

const close = (given: Json, left: ReadonlyArray<LeftOut>): Json => ({
  ...given,
  truncated: left.length > 0,
  ...(left.length === 0 ? {} : { left_out: left }),
})

/** Cuts long lists to {@link listedAtMost} entries, and adds the omissions to `left`. */
const withShortLists = (members: Json, left: Array<LeftOut>): Json =>
  Object.fromEntries(
    Object.entries(members).map(([member, value]) => {
      if (!Array.isArray(value) || value.length <= listedAtMost) return [member, value]
      const bytes = encode(JSON.stringify(value.slice(listedAtMost))).length
      left.push({ member, bytes, how: `Of ${value.length} entries the first ${listedAtMost} are here; REST has all.` })
      return [member, value.slice(0, listedAtMost)]
    }),
  )

/** The long member of an entry. */
const longMember = { links: "url", headers: "value" } as const

/**
 * Returns whole links or header fields from a byte offset of their JSON, and the next offset. An entry longer than the
 * limit is cut if reading continues at it; otherwise reading would never get past it.
 */
const entriesFrom = (entries: ReadonlyArray<Json>, long: string, from: number, limit: number, readsOn: boolean) => {
  const shown: Array<Json> = []
  let [at, used, end] = [0, 0, 0]
  let isFull = false
  for (const entry of entries) {
    const size = encode(JSON.stringify(entry)).length
    const isLong = readsOn && used === 0 && size > limit
    if (at < from) end = at + size
    else if (!isFull && (isLong || used + size <= limit)) {
      shown.push(isLong ? { ...entry, [long]: slice(encode(entry[long]), 0, limit).text, cut: true } : entry)
      used += size
      end = at + size
    } else isFull = true
    at += size
  }
  return { shown, end, total: at }
}

/** Returns a message as `svc_email_get` shows it. */
const message = (input: Json, body: Json): Json => {
  const left: Array<LeftOut> = []
  const from: number = input["text_offset"] ?? 0
  let room = Math.min(input["text_limit"] ?? contentBytes, contentBytes)
  const only: Part | undefined = input["part"] ?? (from > 0 ? "text" : undefined)
  const { text, html: _html, links: _links, headers: _headers, text_reply, ...rest } = body
  const given: Json = withShortLists(rest, left)
  const readOn = (member: Part, at: number) => `Call again with part "${member}" and text_offset ${at}.`

  /** Adds as much of a body as fits; `end` is the offset at which to continue. */
  const put = (member: "text" | "html", most: number) => {
    if (typeof body[member] !== "string") return void (given[member] = null)
    const bytes = encode(body[member])
    const cut = slice(bytes, only === member ? from : 0, Math.min(room, most))
    given[member] = cut.text
    room -= cut.size
    if (cut.end < bytes.length) left.push({ member, bytes: bytes.length - cut.end, how: readOn(member, cut.end) })
  }

  /** Adds the entries that fit. */
  const putEntries = (member: "links" | "headers") => {
    if (!Array.isArray(body[member])) return
    const readsOn = only === member
    const most = readsOn ? room : Math.min(room, entriesBytes)
    const { shown, end, total } = entriesFrom(body[member], longMember[member], readsOn ? from : 0, most, readsOn)
    given[member] = shown
    room -= shown.reduce((sum, one) => sum + encode(JSON.stringify(one)).length, 0)
    if (end < total) left.push({ member, bytes: total - end, how: readOn(member, end) })
  }

  if (only === undefined) {
    const reply = typeof text_reply === "string" ? encode(text_reply) : undefined
    const shown = reply && slice(reply, 0, room)
    given["text_reply"] = shown?.text ?? null
    room -= shown?.size ?? 0
    const whole = typeof text === "string" ? encode(text) : new Uint8Array()
    const begins = typeof text === "string" && shown !== undefined && shown.size > 0 && text.startsWith(shown.text)
    if (reply !== undefined && shown !== undefined && shown.end < reply.length) {
      // The rest is in the text, behind the returned part or elsewhere.
      left.push({
        member: "text_reply",
        bytes: reply.length - shown.end,
        how: readOn("text", begins ? shown.end : 0),
      })
    }
    if (begins && whole.length > room) {
      // The text would repeat `text_reply`, so it is omitted.
      given["text"] = ""
      if (whole.length > shown.end)
        left.push({ member: "text", bytes: whole.length - shown.end, how: readOn("text", shown.end) })
    } else put("text", room)
  } else if (only === "text") put("text", room)
  if (only === "html" || (only === undefined && input["html"] !== false)) {
    put("html", only === "html" ? room : htmlBytes)
  }
  if (only === "links" || only === undefined) putEntries("links")
  if (only === "headers" || (only === undefined && input["headers"] !== false)) putEntries("headers")
  return close(given, left)
}

/** Returns a conversation as `svc_thread_get` shows it: its messages share the limit, and long ones are cut. */
const thread = (_: Json, body: Json): Json => {
  const left: Array<LeftOut> = []
  const messages: ReadonlyArray<Json> = body["messages"]
  const sizes = messages.map(({ text_reply }) => (typeof text_reply === "string" ? encode(text_reply).length : 0))
  // Short messages leave room to long ones: the share is the largest that fits.
  let [room, share] = [contentBytes, contentBytes]
  for (const [at, size] of sizes.toSorted((one, other) => one - other).entries()) {
    share = Math.floor(room / (sizes.length - at))
    if (size > share) break
    room -= size
  }
  return close(
    {
      ...body,
      messages: messages.map((one, at) => {
        const given = withShortLists(one, left)
        if (sizes[at]! <= share) return given
        const cut = slice(encode(one["text_reply"]), 0, share)
        left.push({
          member: `messages/${at}/text_reply`,
          bytes: sizes[at]! - cut.end,
          how: "Read the message with `svc_email_get`.",
        })
        return { ...given, text_reply: cut.text }
      }),
    },
    left,
  )
}

interface Bound {
  /** Additional arguments of the tool, as JSON Schema. */
  readonly arguments: Json
  readonly shape: (input: Json, body: Json) => Json
}

const bounds: Readonly<Record<string, Bound>> = {
  svc_email_get: { arguments: ofMessage, shape: message },
  svc_thread_get: { arguments: {}, shape: thread },
}

/** Returns whether results of this tool may be cut. */
export const isBounded = (tool: string): boolean => Object.hasOwn(bounds, tool)

export const boundArguments = (tool: string): Json => bounds[tool]?.arguments ?? {}
/** Result members that describe what is missing, as JSON Schema. */
export const boundMembers = (tool: string): Json => (isBounded(tool) ? truncation : {})
/** Members of the endpoint's response that a result may omit. */
export const mayLack = (tool: string): ReadonlyArray<string> =>
  tool === "svc_email_get" ? ["text", "text_reply", "html", "links", "headers"] : []

/** Returns the result of a tool, cut if the tool is bounded. */
export const bounded = (tool: string, input: Json, body: Json): Json => bounds[tool]?.shape(input, body) ?? body
