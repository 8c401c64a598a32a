/** Fields for the permissions, expiration and networks of a key. */
import type { ScopeName } from "@svc/domain/account/Scope"
import { Check, Select, TextArea } from "../ui/Field.tsx"
import { say } from "./texts.ts"

/** All scopes that endpoints require. */
export const scopeNames: ReadonlyArray<ScopeName> = [
  "identity:read",
  "identity:write",
  "identity:admin",
  "identity:secret",
  "mail:read",
  "mail:write",
  "mail:send",
  "mail:admin",
  "card:read",
  "card:write",
  "tunnel:read",
  "tunnel:write",
  "tunnel:admin",
  "webhook:read",
  "webhook:write",
  "event:read",
  "event:write",
  "vault:read",
  "vault:write",
  "vault:secret",
  "connector:read",
  "connector:write",
  "connector:send",
  "connector:admin",
  "proof:read",
  "proof:write",
  "proof:admin",
  "proof:token",
  "account:read",
  "account:write",
  "account:admin",
  "account:secret",
]

const readOnly = scopeNames.filter((name) => name.endsWith(":read"))

interface ScopesProps {
  readonly names: ReadonlyArray<string>
  readonly chosen: ReadonlySet<string>
  readonly onChosen: (chosen: ReadonlySet<string>) => void
}

export const ScopeBoxes = ({ names, chosen, onChosen }: ScopesProps) => (
  <fieldset class="scopes">
    <legend>{say("scopes")}</legend>
    {names.map((name) => (
      <Check
        key={name}
        checked={chosen.has(name)}
        onValue={(checked) =>
          onChosen(new Set(checked ? [...chosen, name] : [...chosen].filter((one) => one !== name)))
        }
      >
        <span class="mono">{name}</span>
      </Check>
    ))}
  </fieldset>
)

/** Members of the request that creates a key. */
export interface Asked {
  readonly scopes?: ReadonlyArray<string>
  readonly expires_in_days?: number
  readonly networks?: ReadonlyArray<string>
}

type May = "all" | "read" | "choose"

export interface Rights {
  readonly may: May
  readonly chosen: ReadonlyArray<string>
  readonly days: string
  readonly networks: string
}

export const defaultRights: Rights = { may: "all", chosen: readOnly, days: "90", networks: "" }

/** Returns the request members that selected permissions lead to; undefined if no scope is selected. */
export const requestOf = ({ may, chosen, days, networks }: Rights): Asked | undefined => {
  const ranges = networks.split(/[\s,]+/).filter((one) => one !== "")
  const scopes = may === "all" ? undefined : may === "read" ? readOnly : [...chosen]
  return scopes?.length === 0
    ? undefined
    : {
        ...(scopes === undefined ? {} : { scopes }),
        ...(days === "" ? {} : { expires_in_days: Number(days) }),
        ...(ranges.length === 0 ? {} : { networks: ranges }),
      }
}

interface RightsProps {
  readonly of: Rights
  readonly set: (change: Partial<Rights>) => void
  readonly wrong: (pointer: string) => string | undefined
}

export const RightsFields = ({ of, set, wrong }: RightsProps) => (
  <>
    <Select
      label={say("may")}
      value={of.may}
      onValue={(value) => set({ may: value as May })}
      wrong={requestOf(of) === undefined ? say("choose_one") : wrong("/scopes")}
    >
      <option value="all">{say("may_all")}</option>
      <option value="read">{say("may_read")}</option>
      <option value="choose">{say("may_choose")}</option>
    </Select>
    {of.may === "choose" ? (
      <>
        <p class="hint">{say("scopes_hint")}</p>
        <ScopeBoxes
          names={scopeNames}
          chosen={new Set(of.chosen)}
          onChosen={(chosen) => set({ chosen: [...chosen] })}
        />
      </>
    ) : null}
    <DaysSelect value={of.days} onValue={(days) => set({ days })} atMost={null} wrong={wrong("/expires_in_days")} />
    <TextArea
      label={say("networks")}
      hint={say("networks_hint")}
      value={of.networks}
      onValue={(networks) => set({ networks })}
      rows={2}
      optional
      spellcheck={false}
      wrong={wrong("/networks")}
    />
  </>
)

interface DaysProps {
  readonly value: string
  readonly onValue: (days: string) => void
  /** The maximum in days; null if a key may never expire. */
  readonly atMost: number | null
  readonly wrong?: string | undefined
}

/** Selects the expiration in days; the empty value means the maximum. */
export const DaysSelect = ({ value, onValue, atMost, wrong }: DaysProps) => (
  <Select label={say("until")} value={value} onValue={onValue} wrong={wrong}>
    {[7, 30, 90, 365]
      .filter((days) => atMost === null || days < atMost)
      .map((days) => (
        <option key={days} value={String(days)}>
          {say("days", { count: days })}
        </option>
      ))}
    <option value="">{atMost === null ? say("for_ever") : say("days", { count: atMost })}</option>
  </Select>
)
