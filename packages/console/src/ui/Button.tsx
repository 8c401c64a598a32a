import type { ComponentChildren, JSX } from "preact"
import type { Command } from "../client/Commands.ts"
import { connection } from "../client/Live.ts"
import { Icon, type IconName } from "./Icon.tsx"
import { say } from "./texts.ts"

/** `primary` is the main action of a page, `danger` starts a destructive action, and `fatal` confirms it. */
export type Kind = "primary" | "normal" | "danger" | "fatal" | "plain"

interface Look {
  readonly kind?: Kind
  readonly icon?: IconName
  readonly small?: boolean
  readonly children?: ComponentChildren
}

interface ButtonProps extends Look, Omit<JSX.IntrinsicElements["button"], "kind" | "icon" | "children" | "command"> {
  /** Given for a button that calls the service: a press has no effect while it is busy or the service is unreachable. */
  readonly busy?: boolean
  /** The command that a press runs; it makes the button busy. */
  readonly command?: Command<[]>
}

const look = ({ kind = "normal", small }: Look) => ({
  class: "button",
  "data-kind": kind,
  ...(small === true ? { "data-small": "" } : {}),
})

/** The id of the notice that says that the service is unreachable. */
export const unreachableNotice = "unreachable"

/** A press does not submit a form, either. */
const cutOff = () => ({
  "aria-disabled": true,
  "aria-describedby": unreachableNotice,
  title: say("unreachable"),
  onClick: (event: Event) => event.preventDefault(),
})

export const Button = ({ kind, icon, small, command, children, ...rest }: ButtonProps) => {
  const { busy = command?.busy, onClick = command && (() => void command.run()), ...attributes } = rest
  return (
    <button
      type="button"
      {...look({ ...(kind && { kind }), ...(small && { small }) })}
      {...attributes}
      {...(busy === true
        ? { "aria-busy": true, "aria-disabled": true }
        : busy === false && connection.value === "offline"
          ? cutOff()
          : { onClick })}
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
