/** Modules of the console without a browser: hooks in a component that draws nothing, and calls that a test answers. */
import * as path from "node:path"
import { QueryClientProvider } from "@tanstack/preact-query"
import { type ComponentChild, h, render } from "preact"
import { act } from "preact/test-utils"
import { vi } from "vitest"
import { root } from "../house/Imports.ts"
import { patience } from "../harness/Eventually.ts"
import { Drawn } from "./Drawn.ts"

/** Imports a module of the console. The console has its own type configuration, so its modules are imported without types. */
export const source = (file: string): Promise<any> => import(path.join(root, "packages/console/src", file))

/** How to remove each component that a test has left in place. */
const left = new Set<() => Promise<void>>()
/** Calls that no test has answered. */
const open = new Set<Call>()
/**
 * Removes the components of a test, its calls, its language and its place, which would otherwise act on the next one: a
 * worker keeps its modules.
 */
export const leaveAll = async () => {
  for (const leave of left) await leave()
  left.clear()
  // A component that is removed may save its data by another call.
  for (let calls = [...open]; calls.length > 0; calls = [...open])
    await act(async () => {
      for (const call of calls) call.lose()
    })
  ;(await source("texts/Texts.ts")).language.value = "en"
  ;(await source("router/Router.ts")).place.value = { path: "/", search: "" }
}

/** Ends a test of a page: removes its components, forgets what was read, and restores the globals. */
export const leavePage = async () => {
  await leaveAll()
  ;(await source("client/Queries.ts")).client.clear()
  vi.unstubAllGlobals()
}

/** Signs in without the live stream, which opens when the browser is idle, until the function that is returned is called. */
export const signedIn = async (org: object): Promise<() => void> => {
  const { state } = await source("client/Session.ts")
  vi.stubGlobal("requestIdleCallback", () => 0)
  vi.stubGlobal("cancelIdleCallback", () => {})
  state.value = { is: "in", session: { org } }
  return () => void (state.value = { is: "unknown" })
}

/** Waits until a check holds. The machine may be busy. */
export const eventually = (check: () => void) => vi.waitFor(check, { interval: 5, timeout: patience })

/** Mounts a hook. */
export const mounted = async <P, R>(use: (props: P) => R, props: P) => {
  const { client } = await source("client/Queries.ts")
  let shown: R
  const Probe = ({ given }: { readonly given: P }) => {
    shown = use(given)
    return null
  }
  const parent = { nodeType: 1, childNodes: [], firstChild: null } as never
  const draw = (given: P | undefined) => {
    const child: ComponentChild = given === undefined ? null : h(Probe, { given })
    return act(() => render(h(QueryClientProvider, { client, children: child }), parent))
  }
  left.add(() => draw(undefined))
  await draw(props)
  return {
    /** The latest result of the hook. */
    get now() {
      return shown
    },
    /** Draws the component with other properties. */
    draw,
    act: (run: () => unknown) => act(async () => void (await run())),
    leave: () => draw(undefined),
  }
}

export interface Call {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: any
  /** Responds to the call. */
  readonly answer: (status: number, body?: unknown, headers?: Readonly<Record<string, string>>) => void
  /** Ends the call as a lost connection does. */
  readonly lose: () => void
}

/** Replaces `fetch` by calls that wait for the test. */
export const heldCalls = () => {
  const calls: Array<Call> = []
  const taken = new Set<Call>()
  vi.stubGlobal("fetch", (url: string, { method = "GET", headers = {}, body, signal }: any = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>()
    const ended =
      <A extends ReadonlyArray<unknown>>(end: (...given: A) => void) =>
      (...given: A) => {
        open.delete(made)
        end(...given)
      }
    signal?.addEventListener(
      "abort",
      ended(() => reject(new DOMException("aborted", "AbortError"))),
    )
    const made: Call = {
      method,
      url,
      headers,
      body: body === undefined ? undefined : JSON.parse(body),
      answer: ended((status, content, more = {}) =>
        resolve(
          new Response(content === undefined ? null : JSON.stringify(content), {
            status,
            headers: { ...(content === undefined ? {} : { "content-type": "application/json" }), ...more },
          }),
        ),
      ),
      lose: ended(() => reject(new TypeError("fetch failed"))),
    }
    calls.push(made)
    open.add(made)
    return promise
  })
  const next = () =>
    vi.waitFor(
      () => {
        const call = calls.find((one) => !taken.has(one))
        if (call === undefined) throw new Error("no call")
        taken.add(call)
        return call
      },
      { interval: 2, timeout: patience },
    )
  return {
    all: calls as ReadonlyArray<Call>,
    /** Waits for the next call that the test has not seen. */
    next,
    /** Waits for the next call, responds to it, and returns it. */
    answered: async (status: number, body?: object) => {
      const call = await next()
      await act(async () => call.answer(status, body))
      return call
    },
    /** How many calls the test has not seen. */
    waiting: () => calls.length - taken.size,
  }
}

/** The body of an error response. */
export const problem = (status: number, more: object = {}) => ({
  code: "invalid_request",
  status,
  title: "t",
  detail: "no",
  agent_hint: "fix_call",
  instance: "req_1",
  ...more,
})

/** Storage whose keys are its own properties, as in a browser. */
export class Entries {
  [key: string]: unknown
}
for (const [name, value] of Object.entries({
  getItem(this: Entries, key: string) {
    return this[key] ?? null
  },
  setItem(this: Entries, key: string, value: string) {
    this[key] = value
  },
  removeItem(this: Entries, key: string) {
    delete this[key]
  },
})) {
  Object.defineProperty(Entries.prototype, name, { value })
}

/** Stubs the address and the history of a browser, and returns the entries that were made: `push /identities`. */
export const browserAt = async (path: string) => {
  const entries: Array<string> = []
  const at = (target: string) => {
    vi.stubGlobal("location", new URL(target, "http://localhost"))
  }
  const to = (how: string) => (_: unknown, _title: string, target?: string) => {
    if (target === undefined) return
    at(target)
    entries.push(`${how} ${target.slice("/console".length)}`)
  }
  at(`/console${path}`)
  vi.stubGlobal("history", { state: { key: "here" }, pushState: to("push"), replaceState: to("replace") })
  const [start, search] = path.split("?") as [string, string?]
  ;(await source("router/Router.ts")).place.value = { path: start, search: search === undefined ? "" : `?${search}` }
  return entries as ReadonlyArray<string>
}

/** Sizes never change without a browser. */
class Observer {
  observe() {}
  disconnect() {}
}

/** Draws a component into elements without a browser. */
export const drawn = async <P extends object>(component: (props: P) => unknown, props: P) => {
  const { client } = await source("client/Queries.ts")
  /** The listeners of the document and the window, by event and phase. */
  const listeners: Record<string, Set<(event: object) => void>> = {}
  const of = (type: string, { capture = false } = {}) =>
    (listeners[`${type}${capture ? " capture" : ""}`] ??= new Set())
  const events = {
    addEventListener: (type: string, run: (event: object) => void, how?: object) => void of(type, how).add(run),
    removeEventListener: (type: string, run: (event: object) => void, how?: object) => void of(type, how).delete(run),
  }
  const happen = (event: string, members: object = {}) =>
    act(() => listeners[event]?.forEach((run) => run({ preventDefault: () => {}, ...members })))
  vi.stubGlobal("document", {
    createElementNS: (_: string, name: string) => new Drawn(name),
    createTextNode: (text: string) => new Drawn("", text),
    documentElement: new Drawn("html"),
    activeElement: null,
    ...events,
  })
  vi.stubGlobal("ResizeObserver", Observer)
  vi.stubGlobal("innerHeight", 1_000)
  vi.stubGlobal("HTMLElement", Drawn)
  vi.stubGlobal("scrollTo", () => {})
  for (const [name, run] of Object.entries(events)) vi.stubGlobal(name, run)
  const top = new Drawn("body")
  const draw = (child: ComponentChild) =>
    act(() => render(h(QueryClientProvider, { client, children: child }), top as never))
  left.add(() => draw(null))
  await draw(h(component as never, props))
  const fire = (element: Drawn | undefined, type: string, members?: object) => {
    let prevented = false
    return act(() => {
      prevented = element!.fire(type, members)
    }).then(() => prevented)
  }
  const controls = () => ["input", "textarea", "select"].flatMap((name) => top.all(name))
  /** The last control with this label. The controls of a dialog come last. */
  const field = (label: string): Drawn | undefined => {
    const found = top.all("label").findLast(({ textContent }) => textContent.replace(" (optional)", "") === label)
    return found?.all("input")[0] ?? controls().find(({ attributes }) => attributes["id"] === found?.attributes["for"])
  }
  /** The last button with this name. */
  const button = (name: string): Drawn | undefined =>
    top.all("button").findLast(({ attributes, textContent }) => (attributes["aria-label"] ?? textContent) === name)
  return {
    top,
    fire,
    field,
    button,
    press: (name: string) => fire(button(name), "click"),
    /** Types a text, or chooses an option. */
    enter: (label: string, value: string) => {
      const control = field(label)
      return fire(control, control?.localName === "select" ? "change" : "input", { currentTarget: { value } })
    },
    check: (label: string, checked: boolean) => fire(field(label), "change", { currentTarget: { checked } }),
    submit: () => fire(top.all("form").at(-1), "submit"),
    showTab: (visibilityState: "hidden" | "visible") => {
      Object.assign(document, { visibilityState })
      return happen("visibilitychange")
    },
    /** Runs the listeners of the document and the window, as `resize`, or as `scroll capture` those that capture it. */
    happen,
    /** Returns the terms of the page and their values. */
    facts: () => {
      const values = top.all("dd").map(({ textContent }) => textContent)
      return Object.fromEntries(top.all("dt").map(({ textContent }, index) => [textContent, values[index]]))
    },
    draw: (next: P) => draw(h(component as never, next)),
    leave: () => draw(null),
  }
}

/** An Admin Key as the list of keys has it; its name is its id. */
export const listedKey = (id: string, more: object = {}) => ({
  id,
  name: id,
  scope: "org",
  identity_id: null,
  token_prefix: id,
  scopes: ["*"],
  networks: null,
  created_at: "2026-11-01T00:00:00Z",
  expires_at: null,
  last_used_at: null,
  last_used_address: null,
  replaced_by: null,
  ...more,
})
