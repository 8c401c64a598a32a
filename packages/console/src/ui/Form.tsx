/** Forms: the values that a person enters, the command that submits them, and the errors that the service reports by member. */
import type { ComponentChildren, JSX } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { Refused } from "../client/Client.ts"
import { type Command, useCommand } from "../client/Commands.ts"
import { unsavedInput } from "../client/Unsaved.ts"
import { guardWhile } from "../router/Router.ts"
import { Button, type Kind } from "./Button.tsx"
import type { IconName } from "./Icon.tsx"
import { Note } from "./Page.tsx"
import { ProblemNote } from "./Problem.tsx"
import { say } from "./texts.ts"

/** Returns the service's error for a member of the request, named by its JSON pointer (`/handle`). */
export const wrongAt = (failure: Error | undefined, pointer: string): string | undefined =>
  failure instanceof Refused
    ? failure.problem.errors?.find(({ path }) => path === pointer || path.startsWith(`${pointer}/`))?.message
    : undefined

/** How the input of a form is stored in this browser until the service has it. */
export interface Stored<V> {
  /** Unique in the account. */
  readonly name: string
  /** Members that are never stored. */
  readonly secrets: ReadonlyArray<keyof V>
}

type IsOne<K, All = K> = K extends unknown ? ([All] extends [K] ? true : false) : never
/** Forms of several fields must say how their input is stored; `none` if no account is known. */
type StoredArgument<V> = IsOne<keyof V> extends true ? [stored?: Stored<V>] : [stored: Stored<V> | "none"]

export interface FormState {
  /** Whether the values come from an earlier visit. */
  readonly isRestored: boolean
  readonly isChanged: () => boolean
  /** Resets the form and deletes the stored input. */
  readonly discard: () => void
}

export type FormCommand = Command<[]> & { readonly form?: FormState }

/** Names of forms whose request is in flight: a form that renders anew meanwhile does not restore their input. */
const submitting = new Set<string>()

/** Returns the stored members that still have the type that the form expects. */
const restoredOf = <V extends object>(restored: Partial<V> | undefined, initial: V): Partial<V> => {
  const kindOf = (value: unknown) => (Array.isArray(value) ? "array" : typeof value)
  return Object.fromEntries(
    Object.entries(restored ?? {}).filter(([name, value]) => kindOf(initial[name as keyof V]) === kindOf(value)),
  ) as Partial<V>
}

/**
 * Returns the values of a form and the command that submits them. `field` and `check` give a control its props; `pointer`
 * names the member of the request if it differs from the name of the value. Input that is not submitted survives a reload
 * and leaving the page, except for secrets.
 */
export const useForm = <V extends object>(
  initial: V | (() => V),
  submit: (key: string, values: V) => Promise<unknown>,
  ...[how]: StoredArgument<V>
) => {
  const stored = how === "none" ? undefined : how
  const [{ saved, store, restored }] = useState(() => {
    const saved = { current: typeof initial === "function" ? initial() : initial }
    const store = stored === undefined ? undefined : unsavedInput<Partial<V>>(stored.name)
    const restored =
      stored === undefined || submitting.has(stored.name) ? {} : restoredOf(store?.restored, saved.current)
    return { saved, store, restored }
  })
  const [values, setValues] = useState<V>({ ...saved.current, ...restored })
  const publicOf = (whole: V): Partial<V> => {
    const rest: Partial<V> = { ...whole }
    for (const name of stored?.secrets ?? []) delete rest[name]
    return rest
  }
  const isSame = (one: object, other: object) => JSON.stringify(one) === JSON.stringify(other)
  const [isRestored, setRestored] = useState(() => !isSame(values, saved.current))
  const latest = useRef(values)
  latest.current = values
  const isBusy = useRef(false)
  /** Whether a person entered something while the request was in flight, which the service does not have. */
  const hasMore = useRef(false)
  const command = useCommand(async (key) => {
    isBusy.current = true
    hasMore.current = false
    if (stored !== undefined) submitting.add(stored.name)
    try {
      await submit(key, values)
      saved.current = hasMore.current ? values : latest.current
      if (hasMore.current) store?.write(publicOf(latest.current))
      else store?.remove()
      setRestored(false)
    } finally {
      isBusy.current = false
      if (stored !== undefined) submitting.delete(stored.name)
    }
  })
  const isChanged = () => stored !== undefined && !isBusy.current && !isSame(latest.current, saved.current)
  useLayoutEffect(() => {
    if (isRestored) store?.adopt()
  }, [])
  // Before the browser paints, so that a reload right after the form appears needs a confirmation as well.
  useLayoutEffect(() => (stored === undefined ? undefined : guardWhile(isChanged, () => say("leave_form"))), [])
  // Before the browser paints, so that a reload right after typing loses nothing.
  useLayoutEffect(() => {
    if (isBusy.current) return
    if (isSame(publicOf(values), publicOf(saved.current))) store?.remove()
    else store?.write(publicOf(values))
  }, [values])
  const form: FormState = {
    isRestored,
    isChanged,
    discard: () => {
      store?.remove()
      latest.current = saved.current
      setValues(saved.current)
      setRestored(false)
    },
  }
  // A form without changes shows what was changed elsewhere, also after its own changes were discarded.
  const given = typeof initial === "function" ? undefined : JSON.stringify(initial)
  const known = useRef(given)
  useEffect(() => {
    if (given === undefined || given === known.current) return
    if (isBusy.current || !isSame(latest.current, saved.current)) return
    const former = saved.current
    known.current = given
    saved.current = JSON.parse(given) as V
    // Input that arrived between rendering and this effect is not replaced.
    setValues((shown) => (isSame(shown, former) ? saved.current : shown))
  }, [given, values])
  const set = (change: Partial<V>) => setValues((before) => ({ ...before, ...change }))
  const enter = (change: Partial<V>) => {
    hasMore.current = isBusy.current
    set(change)
  }
  const wrong = (pointer: string) => wrongAt(command.failure, pointer)
  return {
    values,
    set,
    wrong,
    command: { ...command, form } as FormCommand,
    field: <K extends keyof V & string>(name: K, pointer = `/${name}`) => ({
      value: values[name],
      onValue: (value: V[K] | string) => enter({ [name]: value } as Partial<V>),
      wrong: wrong(pointer),
    }),
    check: <K extends keyof V & string>(name: K) => ({
      checked: values[name],
      onValue: (checked: boolean) => enter({ [name]: checked } as Partial<V>),
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

/** Says that input of an earlier visit is shown again. */
export const RestoredNote = ({ onDiscard, children }: { onDiscard?: () => void; children: ComponentChildren }) => (
  <Note>
    <div class="bar spread" role="status">
      <span class="grow">{children}</span>
      {onDiscard === undefined ? null : (
        <Button small onClick={onDiscard}>
          {say("discard_changes")}
        </Button>
      )}
    </div>
  </Note>
)

export interface CommandFormProps {
  readonly command: FormCommand
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
  const cancel = () => {
    command.form?.discard()
    onCancel?.()
  }
  return (
    <Form onDone={() => void run()}>
      {command.form?.isRestored === true ? (
        <RestoredNote onDiscard={command.form.discard}>{say("restored")}</RestoredNote>
      ) : null}
      {children}
      {problem ?? <ProblemNote failure={command.failure} />}
      <div class="actions">
        {onCancel === undefined ? null : <Button onClick={cancel}>{say("cancel")}</Button>}
        <Button type="submit" kind={kind} {...(icon && { icon })} busy={command.busy} disabled={disabled}>
          {doing}
        </Button>
        {actions}
      </div>
    </Form>
  )
}
