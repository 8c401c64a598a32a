/** Names that our own lists reserve. External lists may drop a name in any version. */
import { afterAll, describe, expect, it, vi } from "vitest"

// Imports the module without the external lists, and restores them afterwards, in case files share modules.
vi.doMock("reserved-usernames", () => ({ default: [] }))
vi.doMock("the-big-username-blacklist", () => ({ default: { list: [] } }))
vi.resetModules()
const { check } = await import("@svc/domain/handles/Handle")
const { productHostnames } = await import("@svc/domain/handles/Reserved")
afterAll(() => {
  vi.doUnmock("reserved-usernames")
  vi.doUnmock("the-big-username-blacklist")
  vi.resetModules()
})

const judge = (name: string) => check(name, { brand: "" })._tag
const words = (text: string) => text.trim().split(/\s+/)

describe("the product's own lists of reserved names", () => {
  it("do not reserve other names", () => expect(judge("newsletter")).toBe("Ok"))

  // CA/Browser Forum Baseline Requirements 3.2.2.4.4, and other names that authorities accepted; `is` and `it` are too
  // short.
  it.each(
    words(`
      admin administrator webmaster hostmaster postmaster
      root ssladmin ssladministrator sslwebmaster sysadmin mis
    `),
  )("include %s@, to which certificate authorities send mail", (name) => {
    expect(judge(name)).toBe("Reserved")
    expect(judge(`${name.slice(0, 2)}-${name.slice(2)}`.toUpperCase())).toBe("Reserved")
  })

  // RFC 2142.
  it.each(
    words("abuse noc security postmaster hostmaster usenet news webmaster uucp ftp info marketing sales support"),
  )("include the role %s@", (name) => expect(judge(name)).toBe("Reserved"))

  it.each(productHostnames.filter((name) => name.length >= 3))("reserve the hostname %s", (name) =>
    expect(judge(name)).toBe("Reserved"),
  )
})
