/** A secret that was just made: masked until it is asked for, copied without being shown, never read out. */
import { useState } from "preact/hooks"
import { Button } from "./Button.tsx"
import { CopyButton } from "./Copy.tsx"
import { say } from "./texts.ts"

/** Enough to tell two apart, too little to use. */
export const mask = (value: string) => `${value.slice(0, 7)}${"•".repeat(18)}`

export const Secret = ({ value, what }: { readonly value: string; readonly what: string }) => {
  const [open, setOpen] = useState(false)
  return (
    <div class="secret">
      <code aria-hidden="true">{open ? value : mask(value)}</code>
      <span class="hidden-text" aria-live="polite">
        {what}: {open ? say("shown") : say("masked")}
      </span>
      <Button
        small
        icon="eye"
        aria-label={`${open ? say("hide") : say("show")}: ${what}`}
        onClick={() => setOpen(!open)}
      >
        {open ? say("hide") : say("show")}
      </Button>
      <CopyButton value={value} what={what} kind="normal">
        {say("copy")}
      </CopyButton>
    </div>
  )
}
