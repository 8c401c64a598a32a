/** The outcome for a recipient by the reply of a mail server. */
import * as Outcomes from "@svc/mail-gateway/mail/sending/Outcomes"
import { expect, it } from "vitest"

it.each([
  ["sent", [200, 250, 251, 299]],
  // Replies that ask for a login or encryption are for the operator, who can still correct the settings.
  ["deferred", [null, 199, 300, 354, 421, 450, 499, 530, 534, 535, 538]],
  ["refused", [500, 531, 536, 550, 554, 599]],
] as const)("A message is %s after the replies %j", (state, codes) => {
  for (const code of codes) {
    const reply = { code, status: null, text: "", host: null }
    expect(Outcomes.ofReply("a@example.org", reply)).toEqual({ recipient: "a@example.org", state, reply })
  }
})

it("A failure without a reply has a text of at most 500 characters", () => {
  expect(Outcomes.withoutReply("x".repeat(501), null).text).toBe("x".repeat(500))
})
