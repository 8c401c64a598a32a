import type { ComponentChildren, JSX } from "preact"
import { Icon, type IconName } from "./Icon.tsx"

/** `primary` is the one thing to do on a page, `danger` undoes, `fatal` is the last step of what cannot be undone. */
export type Kind = "primary" | "normal" | "danger" | "fatal" | "plain"

interface Look {
  readonly kind?: Kind
  readonly icon?: IconName
  readonly small?: boolean
  readonly children?: ComponentChildren
}

interface ButtonProps extends Look, Omit<JSX.IntrinsicElements["button"], "kind" | "icon" | "children"> {
  /** It is being done: a second press does nothing. */
  readonly busy?: boolean
}

const look = ({ kind = "normal", small }: Look) => ({
  class: "button",
  "data-kind": kind,
  ...(small === true ? { "data-small": "" } : {}),
})

export const Button = ({ kind, icon, small, busy, children, onClick, ...rest }: ButtonProps) => (
  <button
    type="button"
    {...look({ ...(kind && { kind }), ...(small && { small }) })}
    {...rest}
    {...(busy === true ? { "aria-busy": true, "aria-disabled": true } : { onClick })}
  >
    {busy === true ? <Icon name="wait" /> : icon === undefined ? null : <Icon name={icon} />}
    {children}
  </button>
)

interface LinkProps extends Look {
  readonly href: string
  readonly target?: "_blank"
  readonly rel?: string
  readonly download?: string
  readonly "aria-label"?: string
}

/** A link that looks like a button. */
export const ButtonLink = ({ kind, icon, small, children, ...rest }: LinkProps) => (
  <a {...look({ ...(kind && { kind }), ...(small && { small }) })} {...rest}>
    {icon === undefined ? null : <Icon name={icon} />}
    {children}
  </a>
)
