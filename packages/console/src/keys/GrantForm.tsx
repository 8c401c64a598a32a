/** Edits the permissions of an app. Changes apply from the app's next call. */
import { actions, capabilities } from "@svc/domain/account/Scope"
import { type Answer, call } from "../client/Client.ts"
import { useIdentities } from "../shell/Identities.ts"
import { FormDialog } from "../ui/Dialog.tsx"
import { Check, TextArea } from "../ui/Field.tsx"
import { useForm } from "../ui/Form.tsx"
import { say as common } from "../ui/texts.ts"
import { say } from "./appTexts.ts"
import { say as ofKeys } from "./texts.ts"

const toggled = (names: ReadonlyArray<string>, name: string, isOn: boolean) => [
  ...names.filter((one) => one !== name),
  ...(isOn ? [name] : []),
]

/** Scopes that apps can be granted; the service rejects all others. */
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
  const { values, set, field, check, command } = useForm(
    {
      scopes: of.scopes,
      isWhole: of.handles === null,
      handles: of.handles ?? [],
      networks: (of.networks ?? []).join(" "),
    },
    async (_, { scopes, isWhole, handles, networks }) => {
      const ranges = networks.split(/[\s,]+/).filter((one) => one !== "")
      await call("PATCH /api/grants/:id", {
        params: { id: of.id },
        body: {
          scopes: [...scopes],
          handles: isWhole ? null : [...handles],
          networks: ranges.length === 0 ? null : ranges,
        },
      })
      await onDone()
    },
    { name: `grant:${of.id}`, secrets: [] },
  )
  const { scopes, isWhole, handles } = values
  return (
    <FormDialog
      title={say("change_title", { name: of.client_name })}
      command={command}
      doing={common("save")}
      disabled={scopes.length === 0 || (!isWhole && handles.length === 0)}
      onClose={onClose}
    >
      <fieldset>
        <legend>{say("agents")}</legend>
        <Check {...check("isWhole")}>{say("whole")}</Check>
        {isWhole
          ? null
          : identities.map(({ handle }) => (
              <Check
                key={handle}
                checked={handles.includes(handle)}
                onValue={(isOn) => set({ handles: toggled(handles, handle, isOn) })}
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
            onValue={(isOn) => set({ scopes: toggled(scopes, name, isOn) })}
          >
            <code>{name}</code>
            {name === "vault:secret" ? ` ${say("vault")}` : null}
          </Check>
        ))}
      </fieldset>
      <TextArea
        label={ofKeys("networks")}
        hint={ofKeys("networks_hint")}
        rows={2}
        optional
        spellcheck={false}
        {...field("networks")}
      />
    </FormDialog>
  )
}
