import { usage } from "@svc/cluster/usage/UsageCapability"
import { UsageQueries } from "@svc/cluster/usage/UsageQueries"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"

// Only one method of the queries is used.
const queries = {
  hours: (org: string, identity: IdentityId | undefined) => Effect.succeed([{ org, of: identity ?? "all" }]),
} as never

it.effect("an export has the activity of its Identities, and only that of an account has the account's", () =>
  Effect.gen(function* () {
    const written: Array<unknown> = []
    const pieces = {
      append: () => Effect.die("only lines are written"),
      lines: (member: string, values: ReadonlyArray<unknown>) =>
        Effect.sync(() => void written.push(...values.map((value) => [member, value]))),
    }
    const { once, ofIdentity } = usage.exports[0]
    const member = "usage.jsonl"
    yield* once({ org: "o", canonical: "ada", found: [] }, pieces)
    yield* ofIdentity({ org: "o", id: "1" as IdentityId, handle: "Ada" }, pieces)
    expect(written.splice(0)).toEqual([[member, { identity: "Ada", org: "o", of: "1" }]])
    yield* once({ org: "o", canonical: null, found: [] }, pieces)
    expect(written).toEqual([[member, { identity: null, org: "o", of: "all" }]])
  }).pipe(Effect.provideService(UsageQueries, queries)),
)
