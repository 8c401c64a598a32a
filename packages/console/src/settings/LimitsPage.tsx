/** Every limit and how much of it is used: the account's own, and those of each Identity that has used anything. */
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { bytes, number } from "../texts/Texts.ts"
import { Loaded } from "../ui/Loaded.tsx"
import { Section, Status } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { Frame } from "./Frame.tsx"
import { say } from "./texts.ts"
import "./limits.css"

type Use = Answer<"GET /api/limits">["limits"][number]

const near = 0.8

/** What it stops, where it is reached or nearly so: never by colour alone. */
const Warning = ({ used, limit }: Use) =>
  used >= limit ? (
    <Status tone="bad">{say("limit_reached")}</Status>
  ) : used >= limit * near ? (
    <Status tone="warn">{say("limit_near")}</Status>
  ) : null

const amount = ({ unit }: Use, value: number) => (unit === "bytes" ? bytes(value) : number(value))

const Limit = ({ use }: { readonly use: Use }) => {
  const { name, used, limit, window, resets_at } = use
  return (
    <li>
      <span class="bar">
        <strong>{say(`limit_${name}`)}</strong>
        <Warning {...use} />
      </span>
      <span class="much">
        {say("limit_of", { used: amount(use, used), limit: amount(use, limit) })}
        {window === null ? null : <span class="muted"> {say(`per_${window}`)}</span>}
      </span>
      <meter
        class="use"
        aria-label={say(`limit_${name}`)}
        min={0}
        max={limit}
        optimum={0}
        low={limit * near}
        high={limit * 0.999_999}
        value={Math.min(used, limit)}
      />
      <span class="when">
        {say(`why_${name}`)}
        {resets_at === null || used === 0 ? null : (
          <>
            {" "}
            {say("given_back")} <Time at={resets_at} />.
          </>
        )}
      </span>
    </li>
  )
}

const Limits = ({ uses }: { readonly uses: ReadonlyArray<Use> }) => (
  <ul class="box rows limits">
    {uses.map((use) => (
      <Limit key={use.name} use={use} />
    ))}
  </ul>
)

const LimitsPage = () => {
  const limits = useCall("GET /api/limits", {}, { every: () => 15_000 })
  return (
    <Frame>
      <Loaded of={limits} lines={8}>
        {({ limits }) => (
          <div class="stack-loose">
            <Section title={say("limits_account")} lead={say("limits_lead")}>
              <Limits uses={limits.filter(({ identity }) => identity === null)} />
            </Section>
            {[...new Set(limits.flatMap(({ identity }) => identity ?? []))].map((handle) => (
              <Section key={handle} title={`@${handle}`}>
                <Limits uses={limits.filter(({ identity }) => identity === handle)} />
              </Section>
            ))}
          </div>
        )}
      </Loaded>
    </Frame>
  )
}

export default LimitsPage
