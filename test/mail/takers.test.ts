/** Caching of Mailboxes that accept mail. */
import * as AcceptingMailboxes from "@svc/mail-gateway/mail/AcceptingMailboxes"
import { Timing } from "@svc/mail-gateway/Timing"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"

/** A store that returns the given states, one per look-up. */
const storeOf = (...standings: ReadonlyArray<AcceptingMailboxes.MailboxState>) => {
  const remaining = [...standings]
  return { lookUp: () => Effect.sync(() => remaining.shift()), left: remaining }
}

const ready = (used: "little" | "much" | "all") => ({ status: "ready", used })

it.effect("a Mailbox with free space is read once per second", () =>
  Effect.gen(function* () {
    const store = storeOf(ready("little"), ready("all"), undefined)
    const status = yield* AcceptingMailboxes.make(store.lookUp)
    expect(yield* status("a")).toBe("accept")
    yield* TestClock.adjust(Timing.recipientKnownMillis - 1)
    expect(yield* status("a")).toBe("accept")
    expect(store.left).toHaveLength(2)
    expect(yield* status("b")).toBe("full")
    yield* TestClock.adjust(1)
    expect(yield* status("a")).toBe("unknown")
  }),
)

it.effect("any other Mailbox is read every time", () =>
  Effect.gen(function* () {
    const ask = Effect.fnUntraced(function* (before: AcceptingMailboxes.MailboxState) {
      const status = yield* AcceptingMailboxes.make(storeOf(before, ready("little")).lookUp)
      return [yield* status("a"), yield* status("a")]
    })
    expect(yield* ask(undefined)).toEqual(["unknown", "accept"])
    expect(yield* ask({ status: "deleting", used: "little" })).toEqual(["unknown", "accept"])
    expect(yield* ask({ status: "provisioning", used: null })).toEqual(["not_yet", "accept"])
    expect(yield* ask(ready("all"))).toEqual(["full", "accept"])
    const status = yield* AcceptingMailboxes.make(storeOf(ready("much"), ready("all")).lookUp)
    expect([yield* status("a"), yield* status("a")]).toEqual(["accept", "full"])
  }),
)
