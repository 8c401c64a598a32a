/**
 * Stops outgoing mail of all agents with one click, without confirmation. A bar shows this until sending is resumed, which
 * asks for confirmation.
 */
import { signal } from "@preact/signals"
import { useEffect, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { later } from "../client/Idle.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { list } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { Icon } from "../ui/Icon.tsx"
import { tell } from "../ui/Toast.tsx"
import { useIdentities } from "./Identities.ts"
import { say } from "./texts.ts"

const paths = ["/api/account/mail", "/api/identities/:handle/mail"]

interface Stops {
  /** Identities whose mail can be stopped; undefined until the list has loaded. */
  readonly handles: ReadonlyArray<string> | undefined
  readonly stopped: ReadonlyArray<string>
}

const stops = signal<Stops>({ handles: undefined, stopped: [] })

const isSame = (one: ReadonlyArray<string> = [], other: ReadonlyArray<string> = []) =>
  one.length === other.length && one.every((handle, index) => handle === other[index])

/** Loads which Identities are stopped, after the page has rendered. */
const Watch = () => {
  const handles = useIdentities()
    .data?.identities.filter(({ status }) => status === "ready")
    .map(({ handle }) => handle)
  const known = useCall("GET /api/account/mail").data?.stopped ?? []
  const stopped = (handles ?? []).filter((handle) => known.includes(handle))
  useEffect(() => {
    const before = stops.peek()
    const isKnown = (before.handles === undefined) === (handles === undefined)
    if (!isKnown || !isSame(before.handles, handles) || !isSame(before.stopped, stopped))
      stops.value = { handles, stopped }
  })
  return null
}

export const StopWatch = () => {
  const [isTime, setTime] = useState(false)
  useEffect(() => later(() => setTime(true)), [])
  // The state belongs to one account.
  useEffect(() => () => void (stops.value = { handles: undefined, stopped: [] }), [])
  return isTime ? <Watch /> : null
}

/** Stops all Identities in one call, including those that this tab does not know. */
const stopAll = async () => {
  await call("PATCH /api/account/mail", { body: { outgoing: "stopped" } })
  await outdated(paths)
}

/** Resumes only the Identities that the confirmation named. */
const start = async (handles: ReadonlyArray<string>) => {
  const done = await Promise.allSettled(
    handles.map((handle) =>
      call("PATCH /api/identities/:handle/mail", { params: { handle }, body: { outgoing: "active" } }),
    ),
  )
  await outdated(paths)
  const failed = done.find((one) => one.status === "rejected")
  if (failed !== undefined) throw failed.reason
}

/** Stops all outgoing mail and reports the outcome. */
export const stopAllMail = () =>
  stopAll().then(
    () => tell(say("all_stopped")),
    () => tell(say("not_stopped", { handles: list(stops.peek().handles ?? [say("identities")]) })),
  )

export const StopButton = () => {
  const { handles, stopped } = stops.value
  const running = handles?.filter((handle) => !stopped.includes(handle)) ?? []
  const command = useCommand(stopAll)
  if (stopped.length > 0 && running.length === 0) return null
  const press = async () => {
    if (handles?.length === 0) return tell(say("nobody_to_stop"))
    if (await command.run()) tell(say("all_stopped"))
    else tell(say("not_stopped", { handles: list(running.length === 0 ? [say("identities")] : running) }))
  }
  return (
    <Button kind="danger" icon="stop" title={say("stop_all_why")} busy={command.busy} onClick={() => void press()}>
      <span class="wide-only">{say("stop_all")}</span>
      <span class="hidden-text narrow-only">{say("stop_all")}</span>
    </Button>
  )
}

export const StoppedBar = () => {
  const { handles, stopped } = stops.value
  const again = useCommand(() => start(stopped))
  if (stopped.length === 0) return null
  return (
    <div class="shell-bar" data-tone="bad" role="status">
      <Icon name="stop" />
      <span class="grow">
        {stopped.length === handles?.length ? say("stopped_all") : say("stopped_some", { handles: list(stopped) })}
      </span>
      <ConfirmButton
        small
        title={say("start_title")}
        doing={say("start_again")}
        command={again}
        onDone={() => tell(say("started"))}
      >
        <p>{say("start_why", { handles: list(stopped) })}</p>
      </ConfirmButton>
    </div>
  )
}
