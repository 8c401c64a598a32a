import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { describe, expect, it } from "vitest"
import { attachments } from "./awkward/Attachments.ts"
import { bodies } from "./awkward/Bodies.ts"
import { boundaries } from "./awkward/Boundaries.ts"
import { fields } from "./awkward/Fields.ts"
import type { Reading } from "./awkward/Letter.ts"
import { readings } from "./awkward/PythonEmail.ts"
import { has } from "../harness/Programs.ts"

const awkward = { ...fields, ...bodies, ...boundaries, ...attachments }

const spaces = (text: string) => text.replace(/\s+/g, " ").trim()
const tidy = (text: string) => text.replace(/[ \t\r]+$/gm, "").trimEnd()

const read = (raw: Buffer): Required<Reading> => {
  const { subject, from, to, text, attachments: files } = parse(raw)
  return {
    subject: spaces(subject),
    from: from === null ? "" : `${from.name ?? ""} <${from.address}>`.trim(),
    to: to.map(({ address }) => address),
    text: tidy(text ?? ""),
    attachments: files.map(({ filename, content_type, size }) => [filename, content_type, size] as const),
  }
}

/**
 * Messages that Python parses differently, mostly because it gives up. For an address that is its own name it shows the name.
 */
const otherwise: Readonly<Record<string, ReadonlyArray<keyof Reading>>> = {
  "a subject of raw latin1": ["subject"],
  "a name of raw UTF-8": ["from"],
  "an address of RFC 6532": ["from"],
  "an address twice": ["from"],
  "a plain and an extended file name": ["attachments"],
  "a file name with spaces and without quotation marks": ["attachments"],
  "comments in a content type": ["text"],
  "a multipart without a boundary": ["text", "attachments"],
  "a multipart whose boundary never comes": ["text", "attachments"],
  "a boundary without quotation marks that needs them": ["text"],
  "parts without a header": ["text"],
  "GB2312 that is GBK": ["subject"],
  "a body of windows-1252 that calls itself latin1": ["text"],
  "a body of an unknown character set": ["text"],
  "a set in quotation marks that are single": ["text"],
  "a body of quoted-printable with soft breaks and lower case": ["text"],
  "an encoding with a comment": ["text"],
  "an encoding in quotation marks": ["text"],
  "format=flowed with quotes": ["text"],
  "Korean that Windows added": ["subject"],
  "a file name in Korean that Windows added": ["attachments"],
  "a file name in two pairs of quotation marks": ["attachments"],
  "parts without the blank line before their text": ["text", "attachments"],
  "a percent sign that encodes nothing in an extended file name": ["attachments"],
  "a text with an empty file name": ["attachments"],
  "a boundary of UTF-8": ["text", "attachments"],
  "a boundary of latin1": ["text", "attachments"],
  "a file name with a remark": ["attachments"],
  "comments before an encoding and within a type": ["text"],
  "a footer of a list behind base64": ["text"],
  "a line in the header that is no field": ["subject", "text"],
  "a type without the semicolon behind it": ["attachments"],
  "a type with a comma behind it, and a disposition without its semicolon": ["attachments"],
  "a parameter on a line of its own that is not folded": ["attachments"],
}

describe("Message ids of an awkward message", () => {
  it.each([
    ["Message-ID: <a@b>", "<a@b>", null],
    // Some programs omit one or both brackets, and others reply nevertheless.
    ["Message-ID: a@b", "<a@b>", null],
    ["Message-ID: <a@b", "<a@b>", null],
    ["Message-ID: a@b (of today)", null, null],
    ["Message-ID: <>", null, null],
    ["In-Reply-To: c@d", null, "<c@d>"],
    ["In-Reply-To: Your letter of Monday", null, null],
    ["In-Reply-To: Your letter <c@d> of Monday", null, "<c@d>"],
  ])("of %s are found", (field, id, inReplyTo) => {
    const { message_id, in_reply_to } = parse(Buffer.from(`${field}\r\n\r\nx`))
    expect({ message_id, in_reply_to }).toEqual({ message_id: id, in_reply_to: inReplyTo })
  })
})

describe("An awkward message", () => {
  it.each(Object.entries(awkward))("with %s is read as intended", (_, { raw, reading }) => {
    expect(read(raw)).toMatchObject(reading)
  })

  it.skipIf(!has("python"))("is read by Python in the same way, except what Python cannot parse", () => {
    const names = Object.keys(awkward)
    const theirs = readings(names.map((name) => awkward[name]!.raw))
    const differs = names.flatMap((name, at) => {
      const { raw, reading } = awkward[name]!
      const ours = read(raw)
      const python = theirs[at]!
      const same: { [K in keyof Reading]-?: () => boolean } = {
        subject: () => spaces(String(python.subject)) === ours.subject,
        from: () => python.from === ours.from,
        to: () => JSON.stringify(python.to) === JSON.stringify(ours.to),
        text: () => tidy(String(python.text ?? "")) === ours.text,
        attachments: () => {
          const listed = Array.isArray(python.attachments) ? (python.attachments as Array<Array<unknown>>) : []
          return (
            listed.length === ours.attachments.length &&
            listed.every((one, place) =>
              one.every((value, member) => value === null || value === ours.attachments[place]![member]),
            )
          )
        },
      }
      const members = (Object.keys(reading) as Array<keyof Reading>).filter((member) => !same[member]())
      return members
        .filter((member) => otherwise[name]?.includes(member) !== true)
        .map((member) => `${name}: ${member}`)
    })
    expect(differs).toEqual([])
  })
})
