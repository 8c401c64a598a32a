/** Modal dialogs on the native element, which traps the focus and closes on Escape. */
import type { ComponentChildren } from "preact"
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Command } from "../client/Commands.ts"
import { Button } from "./Button.tsx"
import { TextField } from "./Field.tsx"
import { CommandForm, type CommandFormProps, type FormCommand } from "./Form.tsx"
import type { IconName } from "./Icon.tsx"
import { ProblemNote } from "./Problem.tsx"
import { say } from "./texts.ts"

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly wide?: boolean
  /** Disables Escape and the backdrop, so that the dialog only closes by its own buttons. */
  readonly firm?: boolean
  readonly children: ComponentChildren
}

/** A dialog that is open while it is rendered. */
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

interface FormDialogProps extends Omit<CommandFormProps, "onDone" | "onCancel"> {
  readonly title: string
  readonly onClose: () => void
}

/** Closes the dialog of a form, and asks first if it has input. */
const closing =
  ({ form }: FormCommand, onClose: () => void) =>
  () => {
    if (form?.isChanged() === true && !confirm(say("discard_form"))) return
    form?.discard()
    onClose()
  }

/** A form in a dialog, which closes when the command succeeds. */
export const FormDialog = ({ title, onClose, children, ...form }: FormDialogProps) => (
  <Dialog title={title} onClose={closing(form.command, onClose)}>
    <CommandForm {...form} onDone={onClose} onCancel={onClose}>
      {children}
    </CommandForm>
  </Dialog>
)

interface ConfirmProps {
  readonly title: string
  /** The consequences. */
  readonly children: ComponentChildren
  /** The label of the button that runs the command. */
  readonly doing: string
  readonly command: Command<[]>
  readonly onClose: () => void
  readonly onDone?: () => void
  /** The text that a person must type before the command can run. */
  readonly typed?: string
  readonly kind?: "primary" | "fatal"
}

/** Asks for confirmation of a command that is hard to undo. */
export const Confirm = ({ title, children, doing, command, onClose, onDone, typed, kind = "fatal" }: ConfirmProps) => {
  const [text, setText] = useState("")
  const run = async () => {
    if (!(await command.run())) return
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
      <ProblemNote failure={command.failure} />
      <div class="actions">
        <Button onClick={onClose}>{say("cancel")}</Button>
        <Button kind={kind} disabled={!matches} busy={command.busy} onClick={() => void run()}>
          {doing}
        </Button>
      </div>
    </Dialog>
  )
}

interface ConfirmButtonProps extends Omit<ConfirmProps, "title" | "onClose" | "kind"> {
  /** The title of the dialog; the label of the button by default. */
  readonly title?: string
  readonly kind?: "normal" | "danger"
  readonly icon?: IconName
  readonly small?: boolean
  readonly disabled?: boolean
  /** The accessible name of a button that shows only its icon. */
  readonly name?: string
}

/** A button that asks for confirmation before it runs its command: `danger` for what cannot be undone. */
export const ConfirmButton = (props: ConfirmButtonProps) => {
  const { title = props.doing, kind = "normal", icon, small, disabled, name, ...confirm } = props
  const [asking, setAsking] = useState(false)
  const isIconOnly = name !== undefined
  return (
    <>
      <Button
        kind={isIconOnly ? "plain" : kind}
        {...(icon && { icon })}
        {...(small && { small })}
        {...(disabled && { disabled })}
        {...(isIconOnly && { "aria-label": name })}
        onClick={() => setAsking(true)}
      >
        {isIconOnly ? null : confirm.doing}
      </Button>
      {asking ? (
        <Confirm
          {...confirm}
          title={title}
          kind={kind === "danger" ? "fatal" : "primary"}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </>
  )
}
