/** Sentences that describe Events to people. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { eventTypes } from "@svc/domain/events/Event"
import { eventSentence } from "@svc/domain/events/EventSentences"
import { describe, expect, it } from "vitest"
import { root } from "../mutants/Mutant.ts"

const languages = ["en", "de", "fr"] as const
const inAll = (type: string, data: object, handle: string | null = "ada") =>
  languages.map((language) => eventSentence(language, { type, handle, data }))

const source = readFileSync(path.join(root, "packages/domain/src/events/EventSentences.ts"), "utf8")
/** The members of the data that sentences contain, and data with a value for each. */
const members = [...new Set([...source.matchAll(/data\["(\w+)"\]/g)].map(([, name]) => name!))]
const data = Object.fromEntries(members.map((name) => [name, `<${name}>`]))

describe("an Event's sentence", () => {
  it("contains the names in the Event", () => {
    const from = { address: "grace@example.org", name: "Grace" }
    expect(inAll("email.received", { from, subject: "Lunch?" })).toEqual([
      "ada received an email from grace@example.org: Lunch?",
      "ada hat eine E-Mail von grace@example.org erhalten: Lunch?",
      "ada a reçu un message de grace@example.org\u00a0: Lunch?",
    ])
    expect(inAll("api_key.revoked", { name: "laptop" }, null)).toEqual([
      "The key 'laptop' was revoked",
      "Der Schlüssel „laptop“ wurde widerrufen",
      "La clé «\u00a0laptop\u00a0» a été révoquée",
    ])
    const to = ["bob", "eve"].map((name) => ({ address: `${name}@example.org`, name: null }))
    expect(inAll("email.sent", { to, subject: "Hi" })[0]).toBe("ada sent an email to bob@example.org +1: Hi")
    expect(inAll("mail.stopped", { by: "session", reason: "Holiday" })[0]).toBe(
      "Outgoing mail of ada was stopped by the account holder: Holiday",
    )
    expect(inAll("identity.deleted", { handle: "bob" }, null)[0]).toBe("bob was deleted")
    const post = { author: "grace@example.social", text: "Hello" }
    expect(inAll("connector.mention", { platform: "mastodon", account: "ada@x", post })[0]).toBe(
      "grace@example.social mentioned ada on Mastodon: Hello",
    )
  })

  it("shows the day of an expiry, and why mail was refused", () => {
    const expiring = inAll("api_key.expiring", { name: "ci", expires_at: "2026-11-26T12:00:00.000Z" }, null)
    for (const sentence of expiring) expect(sentence).toMatch(/2026-11-26(?!T)/)
    expect(inAll("email.refused", { reason: "full" })[0]).toMatch(/: the Mailbox is full$/)
    expect(inAll("email.refused", { reason: "size" })[0]).toMatch(/: too large$/)
  })

  it.each([
    ["email.sent", { to: [], cc: [{ address: "bob@example.org" }] }, "ada sent an email to bob@example.org"],
    ["email.sent", { bcc: [{ address: "bob@example.org" }] }, "ada sent an email to bob@example.org"],
    [
      "webhook.failed",
      { event_type: "email.sent", status_code: 503 },
      "A Webhook of ada did not receive email.sent despite all retries: 503",
    ],
    [
      "webhook.failed",
      { event_type: "email.sent", status_code: null, error: "no response" },
      "A Webhook of ada did not receive email.sent despite all retries: no response",
    ],
    [
      "webhook.failed",
      { event_type: "email.sent", status_code: 503, error: null },
      "A Webhook of ada did not receive email.sent despite all retries: 503",
    ],
    ["connector.connected", { account: "ada@x", platform: "mastodon" }, "ada connected ada@x on Mastodon"],
    ["email.bounced", { recipient: "bob@x", diagnostic: "unknown" }, "An email from ada to bob@x bounced: unknown"],
    [
      "email.recipient_blocked",
      { recipients: ["", "bob@x", "eve@x", "ida@x"], subject: "Hi" },
      "ada was not allowed to write to bob@x +2: Hi",
    ],
    ["limit.near", { limit: "mail_hourly" }, "80% of a limit is used: emails per hour"],
    ["limit.near", { limit: "a_new_one" }, "80% of a limit is used: a_new_one"],
    ["card.updated", { changed: ["name", "skills"] }, "ada changed its card: name, skills"],
    // Types that this version does not know, also one whose name every object has.
    ["toString", {}, "ada toString"],
  ])("of %s with %j is %j", (type, data, sentence) => {
    expect(inAll(type, data)[0]).toBe(sentence)
  })

  it.each([
    ["session", "the account holder"],
    ["admin_key", "an Admin Key"],
    ["identity_key", "its own key"],
    ["grant", "an app"],
    ["system", "the service"],
    ["a_new_one", "the service"],
  ])("names the initiator %j as %s", (by, name) => {
    expect(inAll("email.approved", { by })[0]).toBe(`An email from ada was approved by ${name}`)
  })

  it("exists for every type, without empty placeholders", () => {
    for (const type of eventTypes) {
      for (const sentence of inAll(type, {})) {
        expect(sentence, type).not.toBe(type)
        expect(sentence, type).not.toMatch(/[{}]|undefined|null/)
      }
    }
    expect(inAll("email.received", { from: null, subject: "" })[0]).toBe("ada received an email from somebody")
  })

  it("says the same in every language", () => {
    expect(members.length).toBeGreaterThan(10)
    const said = (sentence: string) => members.filter((name) => sentence.includes(`<${name}>`))
    for (const type of eventTypes) {
      const [english, ...others] = inAll(type, data).map(said)
      for (const other of others) expect(other, type).toEqual(english)
    }
  })

  it("differs from that of every other type", () => {
    for (const language of languages)
      for (const given of [data, {}]) {
        const all = eventTypes.map((type) => eventSentence(language, { type, handle: "ada", data: given }))
        expect(all.filter((sentence, at) => all.indexOf(sentence) !== at)).toEqual([])
      }
  })

  it("marks every value that somebody else chose", () => {
    const own = ["count", "event_type", "expires_at", "limit", "platform"]
    const chosen = ["handle", ...members.filter((name) => !own.includes(name))]
    for (const type of [...eventTypes, "future.thing"]) {
      const marked = eventSentence("en", { type, handle: "<handle>", data }, (value) => `[${value}]`)
      const others = marked.replace(/\[.*?\]/g, "")
      for (const name of chosen) expect(others, type).not.toContain(`<${name}>`)
    }
  })

  it("of an unknown type is the type", () => {
    expect(inAll("future.thing", {})[0]).toBe("ada future.thing")
    expect([eventSentence("en", { type: "future.thing" }), eventSentence("en", {})]).toEqual(["future.thing", ""])
    expect(eventSentence("en", { type: "identity.deleted", handle: "bob", data: "x" })).toBe("bob was deleted")
  })

  it("keeps untrusted text on one line and isolates its direction", () => {
    const [sentence] = inAll("email.received", { from: { address: "e@x" }, subject: "a\r\n\u202eb\u2068c" })
    expect(sentence).toBe("ada received an email from e@x: a b c")
    const marked = eventSentence(
      "en",
      { type: "email.received", handle: "ada", data: { subject: "s" } },
      (one) => `<${one}>`,
    )
    expect(marked).toBe("<ada> received an email from somebody: <s>")
  })
})
