/** A new secret: masked until revealed, copied without revealing, never read out by screen readers. */
import { useState } from "preact/hooks"
import { Button } from "./Button.tsx"
import { CopyButton } from "./Copy.tsx"
import { say } from "./texts.ts"

/** Replaces a secret by dots; only the prefix that names its kind stays. */
export const mask = (value: string) => `${/^(?:svc_[a-z]+_|whsec_)/.exec(value)?.[0] ?? ""}${"•".repeat(18)}`

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
