/** Form controls with label, hint and error. */
import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef } from "preact/hooks"
import { say } from "./texts.ts"

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly wrong?: string | undefined
  /** Shows that the field may stay empty. */
  readonly optional?: boolean
}

const Frame = ({
  id,
  label,
  hint,
  wrong,
  optional,
  children,
}: FieldProps & { readonly id: string; readonly children: ComponentChildren }) => (
  <div class="field">
    <label for={id}>
      {label}
      {optional === true ? <span class="muted"> ({say("optional")})</span> : null}
    </label>
    {children}
    {hint === undefined ? null : (
      <span class="hint" id={`${id}-hint`}>
        {hint}
      </span>
    )}
    {wrong === undefined ? null : (
      <span class="wrong" id={`${id}-wrong`} role="alert">
        {wrong}
      </span>
    )}
  </div>
)

const described = (id: string, { hint, wrong }: FieldProps) => {
  const parts = [hint === undefined ? "" : `${id}-hint`, wrong === undefined ? "" : `${id}-wrong`].filter(Boolean)
  return {
    id,
    ...(parts.length === 0 ? {} : { "aria-describedby": parts.join(" ") }),
    ...(wrong === undefined ? {} : { "aria-invalid": true as const }),
  }
}

interface Own extends FieldProps {
  readonly value: string
  readonly onValue: (value: string) => void
  readonly name?: string
  readonly required?: boolean
  readonly disabled?: boolean
  readonly maxLength?: number
  readonly placeholder?: string
  readonly spellcheck?: boolean
  readonly autocomplete?: "off" | "email" | "url" | "name" | "new-password"
  readonly autocapitalize?: "off"
  readonly autofocus?: boolean
}

interface TextProps extends Own {
  readonly type?: "text" | "email" | "url" | "search" | "password"
  /** Text after the control, in the same frame. */
  readonly after?: ComponentChildren
}

/** A single-line text field. */
export const TextField = ({
  label,
  hint,
  wrong,
  optional,
  value,
  onValue,
  after,
  type = "text",
  autofocus,
  ...rest
}: TextProps) => {
  const id = useId()
  const focus = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (autofocus === true) focus.current?.focus()
  }, [])
  const input = (
    <input
      ref={focus}
      class="input"
      autocomplete="off"
      value={value}
      onInput={({ currentTarget }) => onValue(currentTarget.value)}
      {...rest}
      {...({ type } as { type: "text" })}
      {...described(id, { label, hint, wrong })}
    />
  )
  return (
    <Frame {...{ id, label, hint, wrong }} {...(optional && { optional })}>
      {after === undefined ? (
        input
      ) : (
        <div class="affixed">
          {input}
          <span class="affix mono">
            <span class="one-line">{after}</span>
          </span>
        </div>
      )}
    </Frame>
  )
}

export const TextArea = ({
  label,
  hint,
  wrong,
  optional,
  value,
  onValue,
  rows,
  autofocus,
  ...rest
}: Own & { readonly rows?: number }) => {
  const id = useId()
  const focus = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (autofocus !== true) return
    focus.current?.focus()
    focus.current?.setSelectionRange(0, 0)
  }, [])
  return (
    <Frame {...{ id, label, hint, wrong }} {...(optional && { optional })}>
      <textarea
        ref={focus}
        class="input"
        rows={rows ?? 4}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
        {...rest}
        {...described(id, { label, hint, wrong })}
      />
    </Frame>
  )
}

interface SelectProps extends FieldProps {
  readonly value: string
  readonly onValue: (value: string) => void
  readonly name?: string
  readonly disabled?: boolean
  readonly children: ComponentChildren
}

export const Select = ({ label, hint, wrong, optional, value, onValue, children, ...rest }: SelectProps) => {
  const id = useId()
  return (
    <Frame {...{ id, label, hint, wrong }} {...(optional && { optional })}>
      <select
        class="input"
        value={value}
        onChange={({ currentTarget }) => onValue(currentTarget.value)}
        {...rest}
        {...described(id, { label, hint, wrong })}
      >
        {children}
      </select>
    </Frame>
  )
}

interface CheckProps {
  readonly checked: boolean
  readonly onValue: (checked: boolean) => void
  readonly children: ComponentChildren
  readonly name?: string
  readonly required?: boolean
  readonly disabled?: boolean
}

export const Check = ({ checked, onValue, children, ...rest }: CheckProps) => (
  <label class="check">
    <input
      type="checkbox"
      checked={checked}
      onChange={({ currentTarget }) => onValue(currentTarget.checked)}
      {...rest}
    />
    <span>{children}</span>
  </label>
)
