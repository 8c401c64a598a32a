/** Which overlay of the shell is open, and whether single letters are shortcuts. */
import { signal } from "@preact/signals"

const lettersKey = "svc-letters"
const kept = () => {
  try {
    return localStorage.getItem(lettersKey) !== "off"
  } catch {
    return true
  }
}

export const palette = signal(false)
export const help = signal(false)
export const letters = signal(kept())

export const enableLetters = (on: boolean) => {
  letters.value = on
  localStorage.setItem(lettersKey, on ? "on" : "off")
}
