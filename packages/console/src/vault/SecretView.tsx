/** A secret: its value on request, its versions, and deletion. */
import { useState, useEffect } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { outdated } from "../client/Queries.ts"
import { bytes } from "../texts/Texts.ts"
import { Button } from "../ui/Button.tsx"
import { Confirm, Dialog } from "../ui/Dialog.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Facts } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"
import { CopyButton } from "../ui/Copy.tsx"
import { say as common } from "../ui/texts.ts"

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

export type Stored = Answer<"GET /api/vault/secrets">["secrets"][number]

export const reread = () => outdated(["/api/vault/secrets"])

const Restore = ({ of, version }: { readonly of: Place; readonly version: number }) => {
  const restore = useCommand(async (key) => {
    await call("POST /api/vault/secrets/:name/restore", { ...inputOf(of), body: { version } }, { key })
    tell(say("restored", { version }))
    await reread()
  })
  return (
    <>
      <Button small aria-label={`${say("restore")}: ${say("version")} ${version}`} command={restore}>
        {say("restore")}
      </Button>
      <ProblemNote failure={restore.failure} />
    </>
  )
}

const Versions = ({ of, present }: { readonly of: Place; readonly present: number }) => {
  const input = inputOf(of)
  const versions = useList("GET /api/vault/secrets/:name/versions", { ...input, query: { ...input.query, limit: 50 } })
  return (
    <div class="stack">
      <h3>{say("versions")}</h3>
      <p class="muted">{say("versions_lead")}</p>
      <Loaded of={versions}>
        {({ pages }) => (
          <ul class="rows">
            {pages
              .flatMap((page) => page.versions)
              .map(({ version, created_at }) => (
                <li key={version} class="bar spread">
                  <span class="grow">
                    {say("version")} {version} · <Time at={created_at} form="full" />
                  </span>
                  {version === present ? (
                    <span class="tag">{say("present")}</span>
                  ) : (
                    <Restore of={of} version={version} />
                  )}
                </li>
              ))}
          </ul>
        )}
      </Loaded>
      <More of={versions} />
    </div>
  )
}

interface SecretViewProps {
  readonly of: Stored
  readonly identity: string | undefined
  readonly onReplace: () => void
  readonly onClose: () => void
}

export const SecretView = ({ of, identity, onReplace, onClose }: SecretViewProps) => {
  const [removing, setRemoving] = useState(false)
  const place = { name: of.name, identity }
  const remove = useCommand(async () => {
    await call("DELETE /api/vault/secrets/:name", inputOf(place))
    await reread()
  })
  if (removing) {
    return (
      <Confirm
        title={say("remove_title", { name: of.name })}
        doing={say("remove")}
        typed={of.name}
        command={remove}
        onClose={() => setRemoving(false)}
        onDone={() => {
          tell(say("removed", { name: of.name }))
          onClose()
        }}
      >
        <p>{say("remove_why")}</p>
      </Confirm>
    )
  }
  return (
    <Dialog title={of.name} onClose={onClose} wide>
      {/* A restored version does not show the value of the former one. */}
      <Value key={of.version} of={place} />
      <Facts
        facts={[
          of.description !== null && [say("description"), <bdi>{of.description}</bdi>],
          [say("size"), bytes(of.size)],
          [say("version"), of.version],
          [say("changed"), <Time at={of.updated_at} form="full" />],
        ]}
      />
      <Versions of={place} present={of.version} />
      <div class="actions">
        <Button kind="danger" onClick={() => setRemoving(true)}>
          {say("remove")}
        </Button>
        <Button onClick={onReplace}>{say("replace")}</Button>
      </div>
    </Dialog>
  )
}
