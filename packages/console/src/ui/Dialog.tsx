/** A question of its own, in the browser's dialog: it keeps the focus, and Escape closes it. */
import type { ComponentChildren } from "preact"
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Act } from "../client/Acts.ts"
import { Button } from "./Button.tsx"
import { Form, TextField } from "./Field.tsx"
import { ProblemNote } from "./Problem.tsx"
import { say } from "./texts.ts"

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly wide?: boolean
  /** What must be seen before it goes: Escape and the backdrop do not close it. */
  readonly firm?: boolean
  readonly children: ComponentChildren
}

/** Drawn while it is open. */
export const Dialog = ({ title, onClose, wide, firm, children }: DialogProps) => {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useLayoutEffect(() => {
    const dialog = element.current!
    const before = document.activeElement
    dialog.showModal()
    return () => {
      dialog.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      {...(wide === true ? { "data-wide": "" } : {})}
      onCancel={(event) => {
        event.preventDefault()
        if (firm !== true) onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current && firm !== true) onClose()
      }}
    >
      <div>
        <div class="bar spread">
          <h2 id={id} class="grow">
            {title}
          </h2>
          {firm === true ? null : (
            <Button kind="plain" small icon="cross" aria-label={say("close")} onClick={onClose} />
          )}
        </div>
        {children}
      </div>
    </dialog>
  )
}

interface FormDialogProps {
  readonly title: string
  /** The fields, and what comes of it. */
  readonly children: ComponentChildren
  /** The words on the button that does it. */
  readonly doing: string
  readonly act: Act<[]>
  readonly onClose: () => void
  readonly kind?: "primary" | "fatal"
}

/** A form in a dialog, which closes when it was done. */
export const FormDialog = ({ title, children, doing, act, onClose, kind = "primary" }: FormDialogProps) => {
  const run = async () => {
    if (await act.run()) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <Form onDone={() => void run()}>
        {children}
        <ProblemNote failure={act.failure} />
        <div class="actions">
          <Button onClick={onClose}>{say("cancel")}</Button>
          <Button kind={kind} type="submit" busy={act.busy}>
            {doing}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  /** What comes of it. */
  readonly children: ComponentChildren
  /** The words on the button that does it. */
  readonly doing: string
  readonly act: Act<[]>
  readonly onClose: () => void
  readonly onDone?: () => void
  /** What must be typed first, for what cannot be undone. */
  readonly typed?: string
  readonly kind?: "primary" | "fatal"
}

/** Asks before something that is hard to undo. */
export const Confirm = ({ title, children, doing, act, onClose, onDone, typed, kind = "fatal" }: ConfirmProps) => {
  const [text, setText] = useState("")
  const run = async () => {
    if (!(await act.run())) return
    onClose()
    onDone?.()
  }
  const matches = typed === undefined || text.trim().toLowerCase() === typed.toLowerCase()
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">{children}</div>
      {typed === undefined ? null : (
        <TextField
          label={say("type_to_confirm", { what: typed })}
          value={text}
          onValue={setText}
          autocapitalize="off"
          spellcheck={false}
        />
      )}
      <ProblemNote failure={act.failure} />
      <div class="actions">
        <Button onClick={onClose}>{say("cancel")}</Button>
        <Button kind={kind} disabled={!matches} busy={act.busy} onClick={() => void run()}>
          {doing}
        </Button>
      </div>
    </Dialog>
  )
}
