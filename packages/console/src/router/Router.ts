/** The client-side router for paths below `/console`. */
import { computed, signal } from "@preact/signals"
import type { ComponentType } from "preact"
import { enterEntry, leaveEntry, newEntry } from "./Scroll.ts"

export const base = "/console"

const read = () => ({
  path: location.pathname.slice(base.length).replace(/\/+$/, "") || "/",
  search: location.search,
})

export const place = signal(typeof location === "undefined" ? { path: "/", search: "" } : read())
export const path = computed(() => place.value.path)
export const query = computed(() => new URLSearchParams(place.value.search))

const guards = new Set<() => boolean>()

/**
 * Asks before a page with unsaved input is left, reloaded or closed. Browsers show their own question before a reload; without
 * a question, the console's other pages are reached without asking. Returns a function that stops asking.
 */
export const guardWhile = (isUnsaved: () => boolean, question: () => string | undefined) => {
  const ask = () => {
    const text = isUnsaved() ? question() : undefined
    return text === undefined || confirm(text)
  }
  const onUnload = (event: BeforeUnloadEvent) => {
    if (isUnsaved()) event.preventDefault()
  }
  guards.add(ask)
  addEventListener("beforeunload", onUnload)
  return () => {
    guards.delete(ask)
    removeEventListener("beforeunload", onUnload)
  }
}

/** Whether the current page may be left; navigation within a page discards nothing. */
const mayLeave = (to: string) => to === place.peek().path || [...guards].every((ask) => ask())

const pathOf = (to: string) => to.split("?", 1)[0]!.replace(/\/+$/, "") || "/"

export const go = (to: string, how: "push" | "replace" = "push") => {
  if (!mayLeave(pathOf(to))) return
  leaveEntry()
  if (how === "push") history.pushState(newEntry(), "", base + to)
  else history.replaceState(history.state, "", base + to)
  enterEntry(false)
  place.value = read()
}

/** Changes members of the query; undefined removes a member. */
export const refine = (members: Readonly<Record<string, string | undefined>>) => {
  const next = new URLSearchParams(place.peek().search)
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined || value === "") next.delete(name)
    else next.set(name, value)
  }
  const search = next.toString()
  go(place.peek().path + (search === "" ? "" : `?${search}`), "replace")
}

type Params<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | Params<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never
type Props<Path extends string> = { readonly [K in Params<Path>]: string }

export interface PageRoute {
  readonly path: string
  readonly match: (path: string) => Readonly<Record<string, string>> | undefined
  readonly load: () => Promise<ComponentType<Record<string, string>>>
}

/** Matches every path. */
export const everywhere = "*"

/** Declares a page. Its component is loaded on first use and receives the parameters of the path. */
export const page = <Path extends string>(
  pattern: Path,
  load: () => Promise<{ readonly default: ComponentType<Props<Path>> }>,
): PageRoute => {
  const parts = pattern.split("/")
  let loaded: Promise<ComponentType<Record<string, string>>> | undefined
  return {
    path: pattern,
    match: (at) => {
      if (pattern === everywhere) return {}
      const given = at.split("/")
      if (given.length !== parts.length) return undefined
      const isOf = (part: string, index: number) => (part.startsWith(":") ? given[index] !== "" : part === given[index])
      if (!parts.every(isOf)) return undefined
      try {
        return Object.fromEntries(
          parts.flatMap((part, index) =>
            part.startsWith(":") ? [[part.slice(1), decodeURIComponent(given[index]!)]] : [],
          ),
        )
      } catch {
        return undefined
      }
    },
    // The list of routes cannot express that a component takes exactly the parameters of its path.
    load: () =>
      (loaded ??= load().then(
        (module) => module.default as unknown as ComponentType<Record<string, string>>,
        (cause: unknown) => {
          loaded = undefined
          throw cause
        },
      )),
  }
}

const isPlain = (event: MouseEvent) =>
  event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey && !event.defaultPrevented

const ownLink = (target: EventTarget | null) => {
  const link = target instanceof Element ? target.closest("a") : null
  if (link === null || link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return
  return link.pathname === base || link.pathname.startsWith(`${base}/`) ? link : undefined
}

/** Returns the route that matches a path, or undefined. */
export const routeOf = (routes: ReadonlyArray<PageRoute>, at: string) =>
  routes.find(({ match }) => match(at) !== undefined)

/** Handles links below `/console/` without reloading, and preloads their pages on hover and focus. */
export const listen = (routes: ReadonlyArray<PageRoute>) => {
  // The browser would restore the position before the page has loaded.
  history.scrollRestoration = "manual"
  addEventListener("popstate", () => {
    const next = read()
    leaveEntry()
    if (mayLeave(next.path)) {
      enterEntry(true)
      place.value = next
    } else {
      history.pushState(newEntry(), "", base + place.peek().path + place.peek().search)
      enterEntry(false)
    }
  })
  // A reload shows the same position.
  addEventListener("pagehide", leaveEntry)
  enterEntry(true)
  document.addEventListener("click", (event) => {
    const link = ownLink(event.target)
    if (link === undefined || !isPlain(event) || link.pathname.startsWith(`${base}/mail/`)) return
    event.preventDefault()
    go(link.pathname.slice(base.length) + link.search)
  })
  const prepare = ({ target }: Event) => {
    const link = ownLink(target)
    if (link === undefined) return
    const to = link.pathname.slice(base.length).replace(/\/+$/, "") || "/"
    void routeOf(routes, to)
      ?.load()
      .catch(() => undefined)
  }
  document.addEventListener("pointerover", prepare, { passive: true })
  document.addEventListener("focusin", prepare)
}
