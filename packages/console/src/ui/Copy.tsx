/** Taking a value along: each button says what it copied. */
import { useState } from "preact/hooks"
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
  /** What it is, as in "Copy {what}". */
  readonly what: string
  /** The words on the button; the bare sign where it is left out. */
  readonly children?: string
  readonly kind?: Kind
}

export const CopyButton = ({ value, what, children, kind = "plain" }: CopyProps) => {
  const [done, setDone] = useState(false)
  const press = async () => {
    if (!(await copy(typeof value === "string" ? value : await value(), what))) return
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

/** A value in one line that can be copied: an address, an id. */
export const Copyable = ({ value, what }: { readonly value: string; readonly what: string }) => (
  <span class="copyable">
    <span class="text mono" title={value}>
      {value}
    </span>
    <CopyButton value={value} what={what} />
  </span>
)

/** Text to take along as it is: a command, a configuration. */
interface CodeProps {
  readonly text: string
  readonly what: string
  readonly wrap?: boolean
  /** What is seen in its place: the text with its secrets masked. */
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
