/**
 * The data that IMAP returns without parsing the message again: its ENVELOPE as text, and its parts with their
 * BODYSTRUCTURE data and byte offsets (RFC 9051 section 7.5.2). Computed from the MIME index and stored with the
 * message. Offsets are relative to the start of the body, so that added trace fields do not change them.
 */
import * as AddressList from "./AddressList.ts"
import * as Header from "./Header.ts"
import * as Parameters from "./Parameters.ts"
import { index, type Part } from "./Part.ts"
import { nstring, string } from "../imap/protocol/Strings.ts"

/**
 * The maximum characters of one field, of one address field, of the envelopes of embedded messages together, and of the
 * fields of all parts together. Anything beyond is omitted.
 */
export const limits = { field: 4_096, addresses: 16 * 1024, nested: 64 * 1024, parts: 128 * 1024, addressCount: 500 }

export interface Node {
  /** The offsets of the part's header, body and end. The message itself has no header offset. */
  readonly h: number
  readonly b: number
  readonly e: number
  /** Type and subtype in lower case. */
  readonly t: string
  readonly s: string
  readonly p?: ReadonlyArray<readonly [string, string]>
  readonly id?: string
  readonly d?: string
  /** The transfer encoding. */
  readonly c: string
  /** The number of lines of a text or message part. */
  readonly l?: number
  readonly md5?: string
  readonly disposition?: Parameters.Structured
  readonly lang?: ReadonlyArray<string>
  readonly loc?: string
  /** The envelope of an embedded message. */
  readonly env?: string
  readonly parts?: ReadonlyArray<Node>
}

export interface Structure {
  readonly envelope: string
  /** The size of the body in bytes; the header precedes it. */
  readonly body: number
  readonly root: Node
}

const LF = 10

const linesOf = (raw: Buffer, from: number, to: number): number => {
  let lines = 0
  for (let at = from; at < to; at++) if (raw[at] === LF) lines++
  return lines
}

const fieldOf = (
  raw: Buffer,
  rows: ReadonlyArray<Header.Row>,
  name: string,
  limit = limits.field,
): string | undefined => {
  const row = rows.findLast(({ key }) => key === name)
  if (row === undefined) return undefined
  const value = Header.valueOf(raw, { ...row, end: Math.min(row.end, row.value + limit) })
  return value.replaceAll("\0", "").toWellFormed()
}

/** Returns the source routes of addresses such as `<@route:user@domain>`, which are obsolete (RFC 5322 section 4.4). */
const routesOf = (value: string): ReadonlyMap<string, string> => {
  const routes = new Map<string, string>()
  for (let at = value.indexOf("<@"); at >= 0;) {
    const end = value.indexOf(">", at)
    if (end < 0) break
    const colon = value.lastIndexOf(":", end)
    if (colon > at) routes.set(value.slice(colon + 1, end).trim(), value.slice(at + 1, colon).trim())
    at = value.indexOf("<@", end)
  }
  return routes
}

const address = (name: string | undefined, route: string | undefined, spec: string): string => {
  const at = spec.lastIndexOf("@")
  const [local, host] = at < 0 ? [spec, ""] : [spec.slice(0, at), spec.slice(at + 1)]
  return `(${nstring(name === "" ? undefined : name)} ${nstring(route)} ${string(local)} ${string(host)})`
}

/** A group is written between an address without a host and an empty address (section 7.5.2). */
const listed = (entry: AddressList.Entry, routes: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  if (entry.group !== undefined) {
    const members = entry.group.flatMap((one) => listed(one, routes))
    return [`(NIL NIL ${string(entry.name ?? "")} NIL)`, ...members, "(NIL NIL NIL NIL)"]
  }
  const { name, address: spec } = entry
  return spec === undefined || spec === "" ? [] : [address(name, routes.get(spec), spec)]
}

const addresses = (value: string | undefined): string | undefined => {
  if (value === undefined) return undefined
  const routes = routesOf(value)
  const all = AddressList.grouped(value)
    .flatMap((one) => listed(one, routes))
    .slice(0, limits.addressCount)
  return all.length === 0 ? undefined : `(${all.join("")})`
}

const envelopeOf = (raw: Buffer, rows: ReadonlyArray<Header.Row>): string => {
  const text = (name: string) => nstring(fieldOf(raw, rows, name))
  const people = (name: string) => addresses(fieldOf(raw, rows, name, limits.addresses))
  const from = people("from")
  const [sender, reply] = [people("sender") ?? from, people("reply-to") ?? from]
  const all = [from, sender, reply, people("to"), people("cc"), people("bcc")].map((one) => one ?? "NIL")
  return `(${text("date")} ${text("subject")} ${all.join(" ")} ${text("in-reply-to")} ${text("message-id")})`
}

const isMultipart = (part: Part) => part.type.startsWith("multipart/")

const token = /^[\w!#$&^.+-]+$/

/** Computes the structure of a message. `root` is its index, if already available. */
export const make = (raw: Buffer, root: Part = index(raw)): Structure => {
  const base = root.bodyStart
  let nested = limits.nested
  let left = limits.parts

  const nodeOf = (part: Part, isRoot: boolean): Node => {
    const find = (name: string) => {
      const value = fieldOf(raw, part.rows, name)
      if (value === undefined || value.length > left) return undefined
      left -= value.length
      return value
    }
    const content = Parameters.read(
      find("content-type") ?? (part.type === "text/plain" ? "text/plain; charset=us-ascii" : ""),
    )
    const disposition = find("content-disposition")
    const [type = "text", subtype = "plain"] = part.type.split("/")
    // If the field was invalid, the index assumed a type, which has no parameters.
    const parameters = content.value === part.type ? content.parameters : []
    const [id, description, md5, language, location] = [
      find("content-id"),
      find("content-description"),
      find("content-md5"),
      find("content-language"),
      find("content-location"),
    ]
    const message = part.type === "message/rfc822" ? part.parts[0] : undefined
    let env: string | undefined
    if (message !== undefined) {
      env = nested > 0 ? envelopeOf(raw, message.rows) : envelopeOf(raw, [])
      nested -= env.length
    }
    const hasLines = type === "text" || message !== undefined
    return {
      h: isRoot ? 0 : part.start - base,
      b: part.bodyStart - base,
      e: part.end - base,
      t: type,
      s: subtype,
      ...(parameters.length === 0 ? {} : { p: parameters }),
      ...(id === undefined ? {} : { id }),
      ...(description === undefined ? {} : { d: description }),
      c: token.test(part.encoding) ? part.encoding : "7bit",
      ...(hasLines ? { l: linesOf(raw, part.bodyStart, part.end) } : {}),
      ...(md5 === undefined ? {} : { md5 }),
      ...(disposition === undefined ? {} : { disposition: Parameters.read(disposition) }),
      ...(language === undefined ? {} : { lang: language.split(",", 20).map((one) => one.trim()) }),
      ...(location === undefined ? {} : { loc: location }),
      ...(env === undefined ? {} : { env }),
      ...(isMultipart(part) || message !== undefined ? { parts: part.parts.map((one) => nodeOf(one, false)) } : {}),
    }
  }
  return { envelope: envelopeOf(raw, root.rows), body: raw.length - base, root: nodeOf(root, true) }
}

const parametersOf = (parameters: Node["p"]): string =>
  parameters === undefined || parameters.length === 0
    ? "NIL"
    : `(${parameters.map(([name, value]) => `${string(name)} ${string(value)}`).join(" ")})`

const isSplit = (node: Node) => node.t === "multipart"

/** The placeholder for the parts of an empty multipart. */
const noParts = `("text" "plain" NIL NIL NIL "7bit" 0 0)`

/** Writes BODYSTRUCTURE, or BODY if not `extended`. */
export const write = (node: Node, extended: boolean): string => {
  const end = extended
    ? ` ${node.disposition === undefined ? "NIL" : `(${string(node.disposition.value)} ${parametersOf(node.disposition.parameters)})`} ${
        node.lang === undefined
          ? "NIL"
          : node.lang.length === 1
            ? string(node.lang[0]!)
            : `(${node.lang.map(string).join(" ")})`
      } ${nstring(node.loc)}`
    : ""
  if (isSplit(node)) {
    const parts =
      node.parts === undefined || node.parts.length === 0
        ? noParts
        : node.parts.map((one) => write(one, extended)).join("")
    return `(${parts} ${string(node.s)}${extended ? ` ${parametersOf(node.p)}${end}` : ""})`
  }
  const message = node.env === undefined ? undefined : node.parts?.[0]
  // A message that was not indexed is written as binary data, because readers would expect its envelope.
  const [type, subtype] =
    node.t === "message" && node.s === "rfc822" && message === undefined
      ? ["application", "octet-stream"]
      : [node.t, node.s]
  const basic = `${string(type)} ${string(subtype)} ${parametersOf(node.p)} ${nstring(node.id)} ${nstring(node.d)} ${string(node.c)} ${node.e - node.b}`
  const more = message === undefined ? "" : ` ${node.env} ${write(message, extended)}`
  const lines = node.l === undefined ? "" : ` ${node.l}`
  return `(${basic}${more}${lines}${extended ? ` ${nstring(node.md5)}${end}` : ""})`
}
