/** Locates the bytes of a section in a message (RFC 9051 section 6.4.5.1) by its stored structure. */
import * as Header from "../../mime/Header.ts"
import type { Node, Structure } from "../../mime/Structure.ts"
import type { Section } from "../protocol/FetchItems.ts"

/** Offsets into the message. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** Returns the part with this number, or undefined. */
export const nodeAt = ({ root }: Structure, part: ReadonlyArray<number>): Node | undefined => {
  let at: Node | undefined = root
  let isMessage = true
  for (const number of part) {
    const inner: Node | undefined = isMessage || at.env === undefined ? at : at.parts?.[0]
    const counts: boolean = isMessage || at.env !== undefined
    isMessage = false
    // A message that is not a multipart has one part, its body.
    const next: Node | undefined =
      inner?.t === "multipart" ? inner.parts?.[number - 1] : counts && number === 1 ? inner : undefined
    if (next === undefined) return undefined
    at = next
  }
  return at
}

export const spanOf = (structure: Structure, size: number, { part, what }: Section): Span | undefined => {
  const head = size - structure.body
  if (part.length === 0) {
    if (what === "all") return { from: 0, to: size }
    return what === "TEXT" ? { from: head, to: size } : { from: 0, to: head }
  }
  const node = nodeAt(structure, part)
  if (node === undefined) return undefined
  const isRoot = node === structure.root
  switch (what) {
    case "all":
      return { from: head + node.b, to: head + node.e }
    case "MIME":
      return { from: isRoot ? 0 : head + node.h, to: head + node.b }
    default: {
      const message = node.env === undefined ? undefined : node.parts?.[0]
      if (message === undefined) return undefined
      return what === "TEXT"
        ? { from: head + message.b, to: head + message.e }
        : { from: head + message.h, to: head + message.b }
    }
  }
}

/** Returns the requested header fields and the empty line that ends them. */
export const fieldsOf = (header: Buffer, { what, fields }: Section): Buffer => {
  const wanted = new Set(fields)
  const { rows } = Header.read(header, 0, header.length)
  const chosen = rows.filter(({ key }) => key !== "" && wanted.has(key) === (what === "HEADER.FIELDS"))
  return Buffer.concat([...chosen.map(({ start, end }) => header.subarray(start, end)), Buffer.from("\r\n")])
}
