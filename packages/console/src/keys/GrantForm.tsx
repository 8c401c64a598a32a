/** What an app may do, as whom: chosen anew by the account holder. It acts on the app's next call. */
import { actions, capabilities } from "@svc/domain/account/Scope"
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { useIdentities } from "../shell/Identities.ts"
import { Button } from "../ui/Button.tsx"
import { Dialog } from "../ui/Dialog.tsx"
import { Check, Form, TextArea } from "../ui/Field.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { say as common } from "../ui/texts.ts"
import { say } from "./appTexts.ts"
import { say as ofKeys } from "./texts.ts"

const without = (names: ReadonlyArray<string>, name: string) => names.filter((one) => one !== name)
const toggled = (names: ReadonlyArray<string>, name: string, isOn: boolean) =>
  isOn ? [...without(names, name), name] : without(names, name)

/** Scopes that an app can be given; the service refuses any other. */
const offered = capabilities.flatMap((capability) =>
  actions
    .filter((action) => action !== "secret" || capability === "vault")
    .map((action) => ({ capability, action, name: `${capability}:${action}` })),
)

export const GrantForm = ({
  of,
  onClose,
  onDone,
}: {
  readonly of: Answer<"GET /api/grants/:id">
  readonly onClose: () => void
  readonly onDone: () => unknown
}) => {
  const identities = useIdentities().data?.identities ?? []
  const [scopes, setScopes] = useState<ReadonlyArray<string>>(of.scopes)
  const [isWhole, setWhole] = useState(of.handles === null)
  const [handles, setHandles] = useState<ReadonlyArray<string>>(of.handles ?? [])
  const [networks, setNetworks] = useState((of.networks ?? []).join(" "))
  const ranges = networks.split(/[\s,]+/).filter((one) => one !== "")
  const change = useAct(async () => {
    await call("PATCH /api/grants/:id", {
      params: { id: of.id },
      body: {
        scopes: [...scopes],
        handles: isWhole ? null : [...handles],
        networks: ranges.length === 0 ? null : ranges,
      },
    })
    await onDone()
    onClose()
  })
  return (
    <Dialog title={say("change_title", { name: of.client_name })} onClose={onClose}>
      <Form onDone={() => void change.run()}>
        <fieldset>
          <legend>{say("agents")}</legend>
          <Check checked={isWhole} onValue={setWhole}>
            {say("whole")}
          </Check>
          {isWhole
            ? null
            : identities.map(({ handle }) => (
                <Check
                  key={handle}
                  checked={handles.includes(handle)}
                  onValue={(isOn) => setHandles(toggled(handles, handle, isOn))}
                >
                  <bdi>@{handle}</bdi>
                </Check>
              ))}
        </fieldset>
        <fieldset>
          <legend>{say("rights")}</legend>
          {offered.map(({ name }) => (
            <Check
              key={name}
              checked={scopes.includes(name)}
              onValue={(isOn) => setScopes(toggled(scopes, name, isOn))}
            >
              <code>{name}</code>
              {name === "vault:secret" ? ` ${say("vault")}` : null}
            </Check>
          ))}
        </fieldset>
        <TextArea
          label={ofKeys("networks")}
          hint={ofKeys("networks_hint")}
          value={networks}
          onValue={setNetworks}
          rows={2}
          optional
          spellcheck={false}
        />
        <ProblemNote failure={change.failure} />
        <div class="actions">
          <Button onClick={onClose}>{common("cancel")}</Button>
          <Button
            kind="primary"
            type="submit"
            busy={change.busy}
            disabled={scopes.length === 0 || (!isWhole && handles.length === 0)}
          >
            {say("change")}
          </Button>
        </div>
      </Form>
    </Dialog>
  )
}
