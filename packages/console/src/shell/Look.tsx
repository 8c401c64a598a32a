/** The color scheme: the system's unless one is chosen. */
import { effect, signal } from "@preact/signals"
import { Segments } from "../ui/Page.tsx"
import { say } from "./texts.ts"

export const LookChoice = () => (
  <Segments
    label={say("look")}
    value={look.value}
    options={[
      ["system", say("look_system")],
      ["light", say("look_light")],
      ["dark", say("look_dark")],
    ]}
    onValue={(wanted) => (look.value = wanted)}
  />
)

export type Look = "system" | "light" | "dark"

const kept = (): Look => {
  try {
    const found = localStorage.getItem("svc-look")
    return found === "light" || found === "dark" ? found : "system"
  } catch {
    return "system"
  }
}

export const look = signal<Look>(kept())

effect(() => {
  const root = document.documentElement
  if (look.value === "system") delete root.dataset["look"]
  else root.dataset["look"] = look.value
  try {
    localStorage.setItem("svc-look", look.value)
  } catch {
    // Storage is not available: the choice lasts until the page is closed.
  }
})
