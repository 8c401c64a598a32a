import type { ComponentChildren, JSX } from "preact"
import type { Command } from "../client/Commands.ts"
import { Icon, type IconName } from "./Icon.tsx"

/** `primary` is the main action of a page, `danger` starts a destructive action, and `fatal` confirms it. */
export type Kind = "primary" | "normal" | "danger" | "fatal" | "plain"

interface Look {
  readonly kind?: Kind
  readonly icon?: IconName
  readonly small?: boolean
  readonly children?: ComponentChildren
}

interface ButtonProps extends Look, Omit<JSX.IntrinsicElements["button"], "kind" | "icon" | "children" | "command"> {
  /** A press has no effect while the button is busy. */
  readonly busy?: boolean
  /** The command that a press runs; it makes the button busy. */
  readonly command?: Command<[]>
}

const look = ({ kind = "normal", small }: Look) => ({
  class: "button",
  "data-kind": kind,
  ...(small === true ? { "data-small": "" } : {}),
})

export const Button = ({ kind, icon, small, command, children, ...rest }: ButtonProps) => {
  const { busy = command?.busy, onClick = command && (() => void command.run()), ...attributes } = rest
  return (
    <button
      type="button"
      {...look({ ...(kind && { kind }), ...(small && { small }) })}
      {...attributes}
      {...(busy === true ? { "aria-busy": true, "aria-disabled": true } : { onClick })}
    >
      {busy === true ? <Icon name="wait" /> : icon === undefined ? null : <Icon name={icon} />}
      {children}
    </button>
  )
}

interface LinkProps extends Look {
  readonly href: string
  readonly target?: "_blank"
  readonly rel?: string
  readonly download?: string
  readonly "aria-label"?: string
  readonly autofocus?: boolean
}

/** A link that looks like a button. */
export const ButtonLink = ({ kind, icon, small, children, ...rest }: LinkProps) => (
  <a {...look({ ...(kind && { kind }), ...(small && { small }) })} {...rest}>
    {icon === undefined ? null : <Icon name={icon} />}
    {children}
  </a>
)
