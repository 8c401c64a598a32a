/** Keyboard shortcuts. Single letters are off in text fields, and can be disabled. */
import { signal } from "@preact/signals"
import { useLayoutEffect } from "preact/hooks"
import { mailPath } from "../router/Paths.ts"
import { go, path } from "../router/Router.ts"
import { Dialog } from "../ui/Dialog.tsx"
import { Check } from "../ui/Field.tsx"
import { boundTo } from "../ui/Keys.ts"
import { open as palette } from "./Palette.tsx"
import { places } from "./places.ts"
import { say } from "./texts.ts"

const kept = () => {
  try {
    return localStorage.getItem("svc-letters") !== "off"
  } catch {
    return true
  }
}
const letters = signal(kept())
const help = signal(false)

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
  if (document.querySelector("dialog[open]") !== null) return
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

const Keys = ({ of, keys }: { readonly of: string; readonly keys: ReadonlyArray<string> }) => (
  <div class="bar spread">
    <span>{of}</span>
    <span class="bar">
      {keys.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </span>
  </div>
)

export const Shortcuts = () => {
  // Registered before the first paint, so that no key press is lost.
  useLayoutEffect(() => {
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])
  if (!help.value) return null
  return (
    <Dialog title={say("shortcuts")} onClose={() => (help.value = false)}>
      <div class="stack">
        <Keys of={say("keys_palette")} keys={["Ctrl/⌘", "K"]} />
        <Keys of={say("keys_search")} keys={["/"]} />
        <Keys of={say("keys_go")} keys={["g", "h i a v k s"]} />
        <Keys of={say("keys_list")} keys={["j", "k"]} />
        <Keys of={say("keys_create")} keys={["c"]} />
        <h3>{say("keys_mail")}</h3>
        <Keys of={say("keys_reply")} keys={["r", "a", "f"]} />
        <Keys of={say("keys_compose")} keys={["c"]} />
        <Keys of={say("keys_archive")} keys={["e"]} />
        <Keys of={say("keys_delete")} keys={["#"]} />
        <Keys of={say("keys_flag")} keys={["s"]} />
        <Keys of={say("keys_unread")} keys={["u"]} />
        <Keys of={say("keys_select")} keys={["x"]} />
        <Keys of={say("keys_help")} keys={["?"]} />
        <Check
          checked={letters.value}
          onValue={(on) => {
            letters.value = on
            localStorage.setItem("svc-letters", on ? "on" : "off")
          }}
        >
          {say("keys_single")}
        </Check>
      </div>
    </Dialog>
  )
}
