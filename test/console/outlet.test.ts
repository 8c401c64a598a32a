/** The part of the console that shows the page of the current path, without a browser. */
import { h } from "preact"
import { useState } from "preact/hooks"
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { drawn, Entries, leaveAll, source } from "./Modules.ts"

const { Outlet } = await source("shell/Outlet.tsx")
const { page, place } = await source("router/Router.ts")

let reloads = 0
beforeEach(() => {
  reloads = 0
  vi.stubGlobal("sessionStorage", new Entries())
  vi.stubGlobal("navigator", { onLine: true })
  vi.stubGlobal("location", { reload: () => reloads++ })
})
afterEach(async () => {
  await leaveAll()
  vi.unstubAllGlobals()
})

/** Acts, and waits until the promises of the page's chunks have had their effect. */
const settled = async (run: () => void) => {
  await act(run)
  await act(() => new Promise<void>((resolve) => void setImmediate(resolve)))
}

/** A page whose chunk arrives when the test says so. */
const held = (pattern: string, component: (props: Record<string, string>) => unknown) => {
  const { promise, resolve, reject } = Promise.withResolvers<any>()
  promise.catch(() => {})
  return {
    route: page(pattern, () => promise),
    arrives: () => settled(() => resolve({ default: component })),
    fails: (error: Error) => settled(() => reject(error)),
  }
}
const shows = (text: string) => () => h("p", {}, text)
const loaded = (pattern: string, component: (props: Record<string, string>) => unknown) =>
  page(pattern, async () => ({ default: component }))
const at = (path: string) => settled(() => void (place.value = { path, search: "" }))

const open = async (path: string, routes: ReadonlyArray<unknown>) => {
  await at(path)
  const { top } = await drawn(Outlet, { routes })
  await settled(() => {})
  return top
}

describe("The outlet", () => {
  it("keeps the previous page until the next one has loaded", async () => {
    const keys = held("/keys", shows("keys"))
    const top = await open("/", [loaded("/", shows("home")), keys.route])
    expect(top.textContent).toBe("home")
    await at("/keys")
    expect(top.textContent).toBe("home")
    await keys.arrives()
    expect(top.textContent).toBe("keys")
  })

  it("does not show a page, or its failure, that loads after it was left", async () => {
    const [keys, vault] = [held("/keys", shows("keys")), held("/vault", shows("vault"))]
    const top = await open("/keys", [loaded("/", shows("home")), keys.route, vault.route])
    await at("/vault")
    await at("/")
    await keys.arrives()
    await vault.fails(new Error("lost"))
    expect(top.textContent).toBe("home")
  })

  it("shows a page that failed to load or to render as an error, until another page is opened", async () => {
    const broken = () => {
      throw new Error("cannot draw")
    }
    const keys = held("/keys", shows("keys"))
    const top = await open("/vault", [loaded("/", shows("home")), loaded("/vault", broken), keys.route])
    expect(top.textContent).toContain("cannot draw")
    await at("/keys")
    await keys.fails(new Error("cannot load"))
    expect(top.textContent).toContain("cannot load")
    await at("/")
    expect([top.textContent, reloads]).toEqual(["home", 0])
    await at("/elsewhere")
    expect(top.textContent).toContain("Page not found")
  })

  it("reloads once if a chunk of an older build is missing, and not while the browser is offline", async () => {
    const missing = new Error("Failed to fetch dynamically imported module: https://example.org/Keys.js")
    const failing = page("/keys", () => Promise.reject(missing))
    const routes = [loaded("/", shows("home")), failing]
    vi.stubGlobal("navigator", { onLine: false })
    const top = await open("/keys", routes)
    expect([reloads, top.textContent.includes(missing.message)]).toEqual([0, true])
    await at("/")
    vi.stubGlobal("navigator", { onLine: true })
    // The document that is being reloaded keeps its page.
    await at("/keys")
    expect([reloads, top.textContent]).toEqual([1, "home"])
    const reloaded = await open("/keys", routes)
    expect([reloads, reloaded.textContent.includes(missing.message)]).toEqual([1, true])
    // A page that loads ends the incident.
    await at("/")
    await at("/keys")
    expect(reloads).toBe(2)
  })

  it("keeps the state of a page for another parameter, but not for another Identity", async () => {
    let opened = 0
    const counted = ({ handle, id }: Record<string, string>) => {
      const [nth] = useState(() => ++opened)
      return h("p", {}, `${handle} ${id} ${nth}`)
    }
    const top = await open("/identities/ada/mail/1", [loaded("/identities/:handle/mail/:id", counted)])
    expect(top.textContent).toBe("ada 1 1")
    await at("/identities/ada/mail/2")
    expect(top.textContent).toBe("ada 2 1")
    await at("/identities/bob/mail/2")
    expect(top.textContent).toBe("bob 2 2")
  })
})
