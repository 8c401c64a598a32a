/** The audiences of tokens and the sites of sign-ins that an Identity may use without approval. */
import { type Answer, call } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { Check, TextArea } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Section } from "../ui/Page.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"

type Settings = Answer<"GET /api/identities/:handle/proof">

const linesOf = (list: Settings["sites"]) => (list === "any" ? "" : list.join("\n"))
const listOf = (isAny: boolean, text: string) =>
  isAny ? ("any" as const) : text.split(/\s+/).filter((one) => one !== "")

const Settings = ({ handle, settings }: { readonly handle: string; readonly settings: Settings }) => {
  const { values, field, check, command } = useForm(
    {
      anySite: settings.sites === "any",
      sites: linesOf(settings.sites),
      anyAudience: settings.audiences === "any",
      audiences: linesOf(settings.audiences),
    },
    async (_, { anySite, sites, anyAudience, audiences }) => {
      await call("PATCH /api/identities/:handle/proof", {
        params: { handle },
        body: { sites: listOf(anySite, sites), audiences: listOf(anyAudience, audiences) },
      })
      tell(say("saved"))
      await outdated(["/api/identities/:handle/proof"], handle)
    },
    { name: `proof:${handle}`, secrets: [] },
  )
  return (
    <CommandForm command={command} doing={say("save")}>
      <Check {...check("anySite")}>{say("any_site")}</Check>
      {values.anySite ? null : (
        <TextArea label={say("sites")} hint={say("sites_hint")} rows={3} spellcheck={false} {...field("sites")} />
      )}
      <Check {...check("anyAudience")}>{say("any_audience")}</Check>
      {values.anyAudience ? null : (
        <TextArea
          label={say("audiences")}
          hint={say("audiences_hint")}
          rows={3}
          spellcheck={false}
          {...field("audiences")}
        />
      )}
    </CommandForm>
  )
}

export const usePermissions = (handle: string) => useCall("GET /api/identities/:handle/proof", { params: { handle } })

export const Permissions = ({ handle }: { readonly handle: string }) => {
  const settings = usePermissions(handle)
  return (
    <Section title={say("permissions")} lead={say("permissions_why")}>
      <Loaded of={settings} lines={3}>
        {(settings) => <Settings key={JSON.stringify(settings)} handle={handle} settings={settings} />}
      </Loaded>
    </Section>
  )
}
