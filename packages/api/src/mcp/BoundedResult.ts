/**
 * What a tool's result leaves out where the REST answer could fill a model's context: of a message, or of a conversation,
 * at most 16 KiB of content. `truncated` tells whether something is missing, `left_out` what it is and how to read on.
 */
import { encode, slice } from "../mail/TextSlice.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON
type Json = Record<string, any>

/** Bytes of content in one result. */
export const contentBytes = 16 * 1024
/** Of HTML, links and headers, unless they are asked for by `part`: beside the text they seldom say more. */
const htmlBytes = 4 * 1024
const entriesBytes = 2 * 1024
/** Addresses, references or attachments that a result lists of each kind. */
const listedAtMost = 25

const parts = ["text", "html", "links", "headers"] as const
type Part = (typeof parts)[number]

const ofMessage: Json = {
  part: {
    type: "string",
    enum: parts,
    description: "Give only this part of the content, from `text_offset` on.",
  },
  text_offset: {
    type: "integer",
    minimum: 0,
    default: 0,
    description: "The byte of the part to begin at (of the text, without `part`), as `left_out` says it.",
  },
  text_limit: {
    type: "integer",
    minimum: 1,
    default: contentBytes,
    description: `How many bytes of content at most; never more than ${contentBytes}.`,
  },
  html: { type: "boolean", default: true, description: "False leaves out the HTML." },
  headers: { type: "boolean", default: true, description: "False leaves out the header fields." },
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
  /** How much is missing. */
  readonly bytes: number
  readonly how: string
}

const close = (given: Json, left: ReadonlyArray<LeftOut>): Json => ({
  ...given,
  truncated: left.length > 0,
  ...(left.length === 0 ? {} : { left_out: left }),
})

/** Returns the members with long lists cut to {@link listedAtMost} entries, and adds what was cut to `left`. */
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
 * Returns links or header fields from a byte of their JSON on, and where the next one begins. Only whole ones; when they are
 * read on, one that is longer than the limit is cut, or reading would never get past it.
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

/** Returns a message as `svc_email_get` gives it. */
const message = (input: Json, body: Json): Json => {
  const left: Array<LeftOut> = []
  const from: number = input["text_offset"] ?? 0
  let room = Math.min(input["text_limit"] ?? contentBytes, contentBytes)
  const only: Part | undefined = input["part"] ?? (from > 0 ? "text" : undefined)
  const { text, html: _html, links: _links, headers: _headers, text_reply, ...rest } = body
  const given: Json = withShortLists(rest, left)
  const readOn = (member: Part, at: number) => `Call again with part "${member}" and text_offset ${at}.`

  /** Puts as much of a body as there is room for into the result; `end` is where to read on. */
  const put = (member: "text" | "html", most: number) => {
    if (typeof body[member] !== "string") return void (given[member] = null)
    const bytes = encode(body[member])
    const cut = slice(bytes, only === member ? from : 0, Math.min(room, most))
    given[member] = cut.text
    room -= cut.size
    if (cut.end < bytes.length) left.push({ member, bytes: bytes.length - cut.end, how: readOn(member, cut.end) })
  }

  /** Puts the entries that there is room for into the result. */
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
      // The rest of it is in the text: behind what is shown, or somewhere.
      left.push({
        member: "text_reply",
        bytes: reply.length - shown.end,
        how: readOn("text", begins ? shown.end : 0),
      })
    }
    if (begins && whole.length > room) {
      // The text would repeat what `text_reply` shows, so there is none of it.
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

/** Returns a conversation as `svc_thread_get` gives it: what its messages say shares the room, long ones are cut. */
const thread = (_: Json, body: Json): Json => {
  const left: Array<LeftOut> = []
  const messages: ReadonlyArray<Json> = body["messages"]
  const sizes = messages.map(({ text_reply }) => (typeof text_reply === "string" ? encode(text_reply).length : 0))
  // Short ones leave room to long ones: the share is what the ones above it get each.
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
  /** Arguments of the tool that its endpoint does not have, as JSON Schema. */
  readonly arguments: Json
  readonly shape: (input: Json, body: Json) => Json
}

const bounds: Readonly<Record<string, Bound>> = {
  svc_email_get: { arguments: ofMessage, shape: message },
  svc_thread_get: { arguments: {}, shape: thread },
}

/** Whether anything may be left out of this tool's results. */
export const isBounded = (tool: string): boolean => Object.hasOwn(bounds, tool)

export const boundArguments = (tool: string): Json => bounds[tool]?.arguments ?? {}
/** Members of a result that tell what is missing, as JSON Schema. */
export const boundMembers = (tool: string): Json => (isBounded(tool) ? truncation : {})
/** Members of the endpoint's answer that a result may lack. */
export const mayLack = (tool: string): ReadonlyArray<string> =>
  tool === "svc_email_get" ? ["text", "text_reply", "html", "links", "headers"] : []

/** Returns the result of a tool, bounded if the tool is. */
export const bounded = (tool: string, input: Json, body: Json): Json => bounds[tool]?.shape(input, body) ?? body
