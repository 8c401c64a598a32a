/** Limits of concurrent sessions, at their boundaries. */
import * as SessionLimits from "@svc/mail-gateway/mail/imap/server/SessionLimits"
import { expect, it } from "vitest"

it("Sessions are limited per client network, per Mailbox and in all, and an ended session makes room", () => {
  const limits = SessionLimits.make({ inAll: 3, perClient: 2, perMailbox: 1 })
  expect([1, 2, 3].map((n) => limits.connect(`2001:db8::${n}`))).toEqual([true, true, false])
  expect(["192.0.2.1", "192.0.2.2"].map((address) => limits.connect(address))).toEqual([true, false])
  expect([limits.open("ada"), limits.open("ada"), limits.open("grace")]).toEqual([true, false, true])
  limits.close("ada")
  expect(limits.open("ada")).toBe(true)
  limits.disconnect("2001:db8::1")
  expect(limits.connect("192.0.2.2")).toBe(true)
  for (const address of ["2001:db8::2", "192.0.2.1", "192.0.2.2"]) limits.disconnect(address)
  for (const mailbox of ["ada", "grace"]) limits.close(mailbox)
  // Nothing remains in memory of clients and Mailboxes without sessions.
  expect(limits.isEmpty()).toBe(true)
})
