/** Header fields that a sender may add, at the edge of each rule. */
import { violations } from "@svc/domain/mail/HeaderFields"
import { decodeBy, encodeBy, system } from "@svc/domain/account/Initiator"
import { claimedKind } from "@svc/domain/account/Token"
import { describe, expect, it } from "vitest"

const unsubscribe = "<https://example.org/u>"
const post = "List-Unsubscribe=One-Click"
const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-Field-${n}`, "v"]))

describe("A header field", () => {
  it.each<Readonly<Record<string, string>>>([
    {},
    fields(20),
    { "X-A": "", [`X-${"a".repeat(60)}`]: "v" },
    { "List-Unsubscribe": unsubscribe },
    { "List-Unsubscribe": `<mailto:a>,<https://${"a".repeat(500)}>` },
    { "list-unsubscribe": `${unsubscribe}, <mailto:u@example.org>`, "List-Unsubscribe-Post": post },
    { "List-Unsubscribe": Array(5).fill(unsubscribe).join(",") },
    { "X-SGML": "v", "X-Mandate": "v" },
  ])("is accepted: %j", (headers) => expect(violations(headers)).toEqual([]))

  it.each<[Readonly<Record<string, string>>, string, RegExp]>([
    [fields(21), "/headers", /at most 20/],
    [{ "X-A": "1", "x-a": "2" }, "/headers", /each field once/],
    [{ From: "x" }, "/headers/From", /starts with X-/],
    [{ "X-": "x" }, "/headers/X-", /starts with X-/],
    [{ [`X-${"a".repeat(61)}`]: "x" }, `/headers/X-${"a".repeat(61)}`, /starts with X-/],
    [{ "X/~": "x" }, "/headers/X~1~0", /starts with X-/],
    [{ "X-SMTPAPI": "{}" }, "/headers/X-SMTPAPI", /as a command/],
    [{ "x-mailgun-tag": "a" }, "/headers/x-mailgun-tag", /as a command/],
    [{ "X-Bcc": "a@example.org" }, "/headers/X-Bcc", /as a command/],
    [{ "List-Unsubscribe": "https://example.org/u" }, "/headers/List-Unsubscribe", /Expected </],
    [{ "List-Unsubscribe": "<http://example.org/u>" }, "/headers/List-Unsubscribe", /Expected </],
    [{ "List-Unsubscribe": Array(6).fill(unsubscribe).join(",") }, "/headers/List-Unsubscribe", /Expected </],
    [{ "List-Unsubscribe-Post": post }, "/headers/List-Unsubscribe-Post", /as well/],
    [
      { "List-Unsubscribe": "<mailto:u@example.org>", "List-Unsubscribe-Post": post },
      "/headers/List-Unsubscribe-Post",
      /https address as well/,
    ],
    [
      { "List-Unsubscribe": unsubscribe, "List-Unsubscribe-Post": "One-Click" },
      "/headers/List-Unsubscribe-Post",
      /Expected List-Unsubscribe=One-Click/,
    ],
  ])("is refused by name: %j", (headers, path, message) =>
    expect(violations(headers)).toEqual([{ path, message: expect.stringMatching(message) }]),
  )
})

describe("The initiator of a change", () => {
  it("is the same after it was encoded", () => {
    const id = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10"
    for (const kind of ["session", "admin_key", "identity_key", "grant", "system"] as const)
      for (const by of [
        { kind, credentialId: id, requestId: "req_1" },
        { kind, credentialId: null, requestId: null },
        { kind, credentialId: id, requestId: null, approves: true },
      ])
        expect(decodeBy(encodeBy(by))).toEqual(by)
  })

  it("is the system if it is missing or unknown", () => {
    for (const header of [undefined, "", "robot x y"]) expect(decodeBy(header)).toEqual(system)
  })
})

describe("The kind that a credential claims", () => {
  it.each([
    ["Bearer svc_sess_x", "session"],
    ["Bearer svc_admin_x", "admin_key"],
    ["Bearer svc_id_x", "identity_key"],
    ["svc_id_x", "identity_key"],
    ["Bearer other", undefined],
    [undefined, undefined],
  ])("of %s is %s", (header, kind) => expect(claimedKind(header)).toBe(kind))
})
