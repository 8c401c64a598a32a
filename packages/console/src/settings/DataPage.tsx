/** Exports of the account's data, and account deletion. */
import { Removal } from "../account/Removal.tsx"
import { type Answer, call } from "../client/Client.ts"
import { useList } from "../client/Lists.ts"
import { outdated } from "../client/Queries.ts"
import { useIdentities } from "../shell/Identities.ts"
import { bytes } from "../texts/Texts.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Select } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty, Section, Status, type Tone } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { say as common } from "../ui/texts.ts"
import { Time } from "../ui/Time.tsx"
import { Frame } from "./Frame.tsx"
import { say } from "./texts.ts"

type Export = Answer<"GET /api/exports/:id">

const tones: Readonly<Record<Export["status"], Tone>> = { queued: "busy", running: "busy", ready: "ok", failed: "bad" }

const isUnderWay = ({ status }: Export) => status === "queued" || status === "running"

const ExportTable = ({ exports }: { readonly exports: ReadonlyArray<Export> }) => (
  <Table
    label={say("exports")}
    heads={[say("export_what"), say("state"), say("asked"), say("size"), say("lapses")]}
    acts={common("download")}
  >
    {exports.map((one) => (
      <tr key={one.id}>
        <td>{one.identity === null ? say("everything") : <bdi>@{one.identity}</bdi>}</td>
        <td>
          <Status tone={tones[one.status]}>{say(one.status)}</Status>
        </td>
        <td>
          <Time at={one.created_at} />
        </td>
        <td>{one.size === null ? "" : bytes(one.size)}</td>
        <td>
          <Time at={one.expires_at} form="full" />
        </td>
        <td>
          {one.status === "ready" ? (
            <ButtonLink small href={`/api/exports/${one.id}/archive`} download={`${one.id}.zip`}>
              {common("download")}
            </ButtonLink>
          ) : null}
        </td>
      </tr>
    ))}
  </Table>
)

const Exports = () => {
  const exports = useList("GET /api/exports", { query: { limit: 50 } }, { every: watched })
  const identities = useIdentities()
  const { field, command } = useForm({ identity: "" }, async (key, { identity }) => {
    await call("POST /api/exports", { body: identity === "" ? {} : { identity } }, { key })
    await outdated(["/api/exports"])
  })
  return (
    <Section title={say("exports")} lead={say("exports_lead")}>
      <CommandForm command={command} doing={say("make")} kind="normal">
        <Select label={say("export_what")} {...field("identity")}>
          <option value="">{say("everything")}</option>
          {identities.data?.identities.map(({ handle }) => (
            <option key={handle} value={handle}>
              @{handle}
            </option>
          ))}
        </Select>
      </CommandForm>
      <Loaded of={exports}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.exports)
          return all.length === 0 ? <Empty icon="vault" title={say("none")} /> : <ExportTable exports={all} />
        }}
      </Loaded>
      <More of={exports} />
    </Section>
  )
}

/** Exports raise no Event when they are ready, so running ones are polled. */
const watched = (pages: ReadonlyArray<Answer<"GET /api/exports">>) =>
  pages.some(({ exports }) => exports.some(isUnderWay)) ? 1500 : (false as const)

const Deletion = () => {
  const identities = useIdentities()
  return (
    <Section title={say("remove")} lead={say("remove_lead")}>
      <div class="bar">
        <Removal>
          <p>{say("remove_lead")}</p>
          <p>{say("remove_count", { count: identities.data?.identities.length ?? 0 })}</p>
          <p>{say("export_first")}</p>
        </Removal>
      </div>
    </Section>
  )
}

const DataPage = () => (
  <Frame>
    <Exports />
    <Deletion />
  </Frame>
)

export default DataPage
