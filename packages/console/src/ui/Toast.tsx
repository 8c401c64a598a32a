/** Notifications at the edge of the screen. One that offers an action stays until it is dismissed. */
import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { Button } from "./Button.tsx"
import { say } from "./texts.ts"

interface Toast {
  readonly id: number
  readonly text: string
  /** An action. `millis` limits the time in which it is possible. */
  readonly offer?: { readonly text: string; readonly run: () => void; readonly millis?: number }
}

const toasts = signal<ReadonlyArray<Toast>>([])
let count = 0

const drop = (id: number) => (toasts.value = toasts.value.filter((one) => one.id !== id))

export const tell = (text: string, offer?: Toast["offer"]) => {
  const id = count++
  toasts.value = [...toasts.value.slice(-2), { id, text, ...(offer && { offer }) }]
  const millis = offer === undefined ? 5000 : offer.millis
  if (millis !== undefined) setTimeout(drop, millis, id)
}

/** The notifications, and notices that stay while a condition holds. They lie over the page, so that it does not move. */
export const Toasts = ({ children }: { readonly children?: ComponentChildren }) => (
  <div class="toasts" role="status" aria-live="polite">
    {children}
    {toasts.value.map(({ id, text, offer }) => (
      <div class="toast" key={id}>
        <span class="grow">{text}</span>
        {offer === undefined ? null : (
          <Button kind="plain" small onClick={() => (drop(id), offer.run())}>
            {offer.text}
          </Button>
        )}
        <Button kind="plain" small icon="cross" aria-label={say("dismiss")} onClick={() => drop(id)} />
      </div>
    ))}
  </div>
)
