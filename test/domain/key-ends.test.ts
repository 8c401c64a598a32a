import { nextExpiryNotice } from "@svc/domain/account/KeyRights"
import { describe, expect, it } from "vitest"

const day = 86_400_000
const end = new Date(100 * day)

describe("the next notification of a key's expiry", () => {
  it.each([
    [92, 93],
    [93, 99],
    [98, 99],
    [99, 100],
    [99.5, 100],
    [100, 100],
    [101, 100],
  ])("on day %d of a key that expires on day 100 is on day %d", (now, next) => {
    expect(nextExpiryNotice(end, now * day)).toEqual(new Date(next * day))
  })

  it("does not exist for a key that never expires", () => {
    expect(nextExpiryNotice(null, 0)).toBeNull()
  })
})
