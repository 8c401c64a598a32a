/** Names that our own lists reserve. External lists may drop a name in any version. */
import * as path from "node:path"
import type * as Handle from "@svc/domain/handles/Handle"
import type * as Reserved from "@svc/domain/handles/Reserved"
import { describe, expect, it, vi } from "vitest"
import { root } from "../house/Imports.ts"

// Imports separate instances of the modules, without the external lists. To reset all modules would give the next files of
// the worker second instances of modules that listen to channels or hold connections.
const instance = (name: string) => import(path.join(root, `packages/domain/src/handles/${name}.ts?own`))
vi.doMock("reserved-usernames", () => ({ default: [] }))
vi.doMock("the-big-username-blacklist", () => ({ default: { list: [] } }))
const ownReserved: typeof Reserved = await instance("Reserved")
vi.doMock("@svc/domain/handles/Reserved", () => ownReserved)
const { check }: typeof Handle = await instance("Handle")
for (const name of ["reserved-usernames", "the-big-username-blacklist", "@svc/domain/handles/Reserved"])
  vi.doUnmock(name)

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

  it.each(ownReserved.productHostnames.filter((name) => name.length >= 3))("reserve the hostname %s", (name) =>
    expect(judge(name)).toBe("Reserved"),
  )
})
