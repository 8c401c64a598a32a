/** Forms: the values that a person enters, the command that submits them, and the errors that the service reports by member. */
import type { ComponentChildren, JSX } from "preact"
import { useState } from "preact/hooks"
import { Refused } from "../client/Client.ts"
import { type Command, useCommand } from "../client/Commands.ts"
import { Button, type Kind } from "./Button.tsx"
import type { IconName } from "./Icon.tsx"
import { ProblemNote } from "./Problem.tsx"
import { say } from "./texts.ts"

/** Returns the service's error for a member of the request, named by its JSON pointer (`/handle`). */
export const wrongAt = (failure: Error | undefined, pointer: string): string | undefined =>
  failure instanceof Refused
    ? failure.problem.errors?.find(({ path }) => path === pointer || path.startsWith(`${pointer}/`))?.message
    : undefined

/**
 * Returns the values of a form and the command that submits them. `field` and `check` give a control its props; `pointer`
 * names the member of the request if it differs from the name of the value.
 */
export const useForm = <V extends object>(
  initial: V | (() => V),
  submit: (key: string, values: V) => Promise<unknown>,
) => {
  const [values, setValues] = useState<V>(initial)
  const command: Command<[]> = useCommand((key) => submit(key, values))
  const set = (change: Partial<V>) => setValues((before) => ({ ...before, ...change }))
  const wrong = (pointer: string) => wrongAt(command.failure, pointer)
  return {
    values,
    set,
    wrong,
    command,
    field: <K extends keyof V & string>(name: K, pointer = `/${name}`) => ({
      value: values[name],
      onValue: (value: V[K] | string) => set({ [name]: value } as Partial<V>),
      wrong: wrong(pointer),
    }),
    check: <K extends keyof V & string>(name: K) => ({
      checked: values[name],
      onValue: (checked: boolean) => set({ [name]: checked } as Partial<V>),
    }),
  }
}

type FormProps = Omit<JSX.IntrinsicElements["form"], "onSubmit"> & { readonly onDone: () => void }

export const Form = ({ onDone, children, ...rest }: FormProps) => (
  <form
    class="form"
    onSubmit={(event) => {
      event.preventDefault()
      onDone()
    }}
    {...rest}
  >
    {children}
  </form>
)

export interface CommandFormProps {
  readonly command: Command<[]>
  /** The label of the submit button. */
  readonly doing: string
  readonly kind?: Kind
  readonly icon?: IconName
  readonly disabled?: boolean
  /** Runs after the command succeeded. */
  readonly onDone?: () => void
  readonly onCancel?: () => void
  /** Replaces the problem of the last attempt. */
  readonly problem?: ComponentChildren
  /** Buttons beside the submit button. */
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** A form that runs a command: its fields, the problem of the last attempt, and its buttons. */
export const CommandForm = (props: CommandFormProps) => {
  const {
    command,
    doing,
    kind = "primary",
    icon,
    disabled = false,
    onDone,
    onCancel,
    problem,
    actions,
    children,
  } = props
  const run = async () => {
    if (await command.run()) onDone?.()
  }
  return (
    <Form onDone={() => void run()}>
      {children}
      {problem ?? <ProblemNote failure={command.failure} />}
      <div class="actions">
        {onCancel === undefined ? null : <Button onClick={onCancel}>{say("cancel")}</Button>}
        <Button type="submit" kind={kind} {...(icon && { icon })} busy={command.busy} disabled={disabled}>
          {doing}
        </Button>
        {actions}
      </div>
    </Form>
  )
}
