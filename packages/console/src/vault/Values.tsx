/** The value of a secret: fetched only on request, never cached, and hidden after a while. */
import { useEffect, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { Button } from "../ui/Button.tsx"
import { CopyButton } from "../ui/Copy.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say as common } from "../ui/texts.ts"
import { say } from "./texts.ts"

const shownMillis = 30_000

/** A secret's name and the Handle of its namespace; undefined for the account's. */
export interface Place {
  readonly name: string
  readonly identity: string | undefined
}

export const inputOf = ({ name, identity }: Place) => ({
  params: { name },
  query: identity === undefined ? {} : { identity },
})

const read = async (place: Place) => (await call("GET /api/vault/secrets/:name/value", inputOf(place))).value

export const Value = ({ of }: { readonly of: Place }) => {
  const [value, setValue] = useState<string>()
  const reveal = useCommand(async () => setValue(await read(of)))
  useEffect(() => {
    if (value === undefined) return
    const hide = () => setValue(undefined)
    const timer = setTimeout(hide, shownMillis)
    document.addEventListener("visibilitychange", hide)
    return () => {
      clearTimeout(timer)
      document.removeEventListener("visibilitychange", hide)
    }
  }, [value])
  return (
    <div class="stack">
      <div class="secret">
        <code aria-hidden="true">{value ?? "•".repeat(24)}</code>
        <span class="hidden-text" aria-live="polite">
          {of.name}: {value === undefined ? common("masked") : common("shown")}
        </span>
        <Button
          small
          icon="eye"
          busy={reveal.busy}
          aria-pressed={value !== undefined}
          onClick={() => (value === undefined ? void reveal.run() : setValue(undefined))}
        >
          {value === undefined ? say("reveal") : common("hide")}
        </Button>
        <CopyButton value={() => read(of)} what={of.name} kind="normal">
          {common("copy")}
        </CopyButton>
      </div>
      {value === undefined ? null : <span class="hint">{say("hides")}</span>}
      <ProblemNote failure={reveal.failure} />
    </div>
  )
}
