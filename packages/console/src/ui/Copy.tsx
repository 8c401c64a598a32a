/** Buttons that copy a value and confirm what they copied. */
import { useState } from "preact/hooks"
import { Refused } from "../client/Client.ts"
import { Button, type Kind } from "./Button.tsx"
import { say } from "./texts.ts"
import { tell } from "./Toast.tsx"

export const copy = async (value: string, what: string): Promise<boolean> => {
  try {
    await navigator.clipboard.writeText(value)
    tell(say("copied_what", { what }))
    return true
  } catch {
    tell(say("not_copied"))
    return false
  }
}

interface CopyProps {
  readonly value: string | (() => Promise<string>)
  /** The name of the value, as in "Copy {what}". */
  readonly what: string
  /** The label; only the icon is shown without one. */
  readonly children?: string
  readonly kind?: Kind
}

export const CopyButton = ({ value, what, children, kind = "plain" }: CopyProps) => {
  const [done, setDone] = useState(false)
  const press = async () => {
    let text: string
    try {
      text = typeof value === "string" ? value : await value()
    } catch (cause) {
      // A value that must be read first may be unavailable.
      return tell(cause instanceof Refused ? cause.message : say("unreachable"))
    }
    if (!(await copy(text, what))) return
    setDone(true)
    setTimeout(setDone, 1500, false)
  }
  return (
    <Button
      kind={kind}
      small
      icon={done ? "check" : "copy"}
      aria-label={say("copy_what", { what })}
      title={say("copy_what", { what })}
      onClick={() => void press()}
    >
      {children}
    </Button>
  )
}

/** A single-line value with a copy button. */
export const Copyable = ({ value, what }: { readonly value: string; readonly what: string }) => (
  <span class="copyable">
    <span class="text mono" title={value}>
      {value}
    </span>
    <CopyButton value={value} what={what} />
  </span>
)

/** A block of text with a copy button. */
interface CodeProps {
  readonly text: string
  readonly what: string
  readonly wrap?: boolean
  /** The visible text, with secrets masked. */
  readonly shown?: string
}

export const Code = ({ text, what, wrap, shown = text }: CodeProps) => (
  <div class="code" {...(wrap === true ? { "data-wrap": "" } : {})}>
    <pre tabIndex={0} aria-label={what}>
      {shown}
    </pre>
    <CopyButton value={text} what={what} kind="normal">
      {say("copy")}
    </CopyButton>
  </div>
)
