/** A menu in a native popover, which closes on Escape and outside clicks. Its content is rendered when it first opens. */
import type { ComponentChildren } from "preact"
import { useId, useRef, useState } from "preact/hooks"
import { Button, type Kind } from "./Button.tsx"
import type { IconName } from "./Icon.tsx"

interface MenuProps {
  readonly label: string
  readonly icon: IconName
  readonly kind?: Kind
  readonly children: ComponentChildren
  /** Text beside the icon. */
  readonly text?: string
  readonly onOpen?: () => void
}

export const Menu = ({ label, icon, kind = "plain", text, children, onOpen }: MenuProps) => {
  const id = useId()
  const button = useRef<HTMLSpanElement>(null)
  const [isDrawn, setDrawn] = useState(false)
  return (
    <span ref={button}>
      <Button kind={kind} icon={icon} aria-label={label} title={label} popovertarget={id}>
        {text}
      </Button>
      <div
        id={id}
        popover="auto"
        class="menu"
        onBeforeToggle={() => setDrawn(true)}
        onToggle={(event) => {
          const element = event.currentTarget
          if (!element.matches(":popover-open") || button.current === null) return
          onOpen?.()
          const from = button.current.getBoundingClientRect()
          element.style.top = `${Math.max(8, Math.min(from.bottom + 4, innerHeight - element.offsetHeight - 8))}px`
          element.style.left = `${Math.max(8, Math.min(from.left, innerWidth - element.offsetWidth - 8))}px`
        }}
        onClick={(event) => {
          if (event.target instanceof Element && event.target.closest("[data-stay]") === null)
            if (event.target.closest("a, button") !== null) event.currentTarget.hidePopover()
        }}
      >
        {isDrawn ? children : null}
      </div>
    </span>
  )
}
