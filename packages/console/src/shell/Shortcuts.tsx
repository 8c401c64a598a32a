/** Keyboard shortcuts. Single letters are off in text fields, and can be disabled. */
import type { FunctionComponent } from "preact"
import { useEffect, useLayoutEffect, useState } from "preact/hooks"
import { later } from "../client/Idle.ts"
import { mailPath } from "../router/Paths.ts"
import { go, path } from "../router/Router.ts"
import { boundTo } from "../ui/Keys.ts"
import { help, letters, palette } from "./Overlays.ts"
import { places } from "./places.ts"

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox], [type=radio])"))

/** Moves the focus among the links of the current list. */
const step = (by: number) => {
  const links = [...document.querySelectorAll<HTMLElement>("main [data-list] a.whole")]
  const at = links.indexOf(document.activeElement as HTMLElement)
  links[Math.max(0, Math.min(links.length - 1, at === -1 ? 0 : at + by))]?.focus()
}

/** The Handle of the Mailbox that is shown. */
const mailbox = () => /^\/identities\/([^/]+)\/mail(?:\/|$)/.exec(path.peek())?.[1]

const create = () => {
  const handle = mailbox()
  go(handle === undefined ? "/identities/new" : `${mailPath(decodeURIComponent(handle))}/compose`)
}

let going = 0

const press = (event: KeyboardEvent) => {
  if (event.key === "k" && (event.metaKey || event.ctrlKey)) {
    event.preventDefault()
    palette.value = !palette.peek()
    return
  }
  if (!letters.peek() || isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey) return
  if (palette.peek() || help.peek() || document.querySelector("dialog[open]") !== null) return
  if (Date.now() - going < 1200) {
    going = 0
    const to = places.find(({ letter }) => letter === event.key)
    if (to !== undefined) return go(to.to)
  }
  const run = boundTo(event.key)
  if (run !== undefined) {
    event.preventDefault()
    run()
  } else if (event.key === "g") going = Date.now()
  else if (event.key === "/") {
    event.preventDefault()
    const search = document.querySelector<HTMLInputElement>("main input[type=search]")
    if (search === null) palette.value = true
    else search.focus()
  } else if (event.key === "c") create()
  else if (event.key === "j") step(1)
  else if (event.key === "k") step(-1)
  else if (event.key === "?") help.value = true
}

/** An overlay that is loaded when the browser is idle, or when it is opened. */
const useOverlay = (isOpen: boolean, load: () => Promise<{ readonly default: FunctionComponent }>) => {
  const [Loaded, setLoaded] = useState<FunctionComponent>()
  const get = () =>
    void load()
      .then((module) => setLoaded(() => module.default))
      .catch(() => undefined)
  useEffect(() => later(get), [])
  useEffect(() => {
    if (isOpen && Loaded === undefined) get()
  }, [isOpen])
  return isOpen ? Loaded : undefined
}

export const Shortcuts = () => {
  // Registered before the first paint, so that no key press is lost.
  useLayoutEffect(() => {
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])
  const Palette = useOverlay(palette.value, () => import("./palette/Palette.tsx"))
  const Help = useOverlay(help.value, () => import("./palette/Help.tsx"))
  return (
    <>
      {Palette === undefined ? null : <Palette />}
      {Help === undefined ? null : <Help />}
    </>
  )
}
