/** Fields for the permissions, expiration and networks of a key. */
import { useState } from "preact/hooks"
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

/**
 * Holds the selected permissions and the request members that they lead to; `asked` is undefined if no scope is selected.
 */
export const useRights = () => {
  const [may, setMay] = useState<May>("all")
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(readOnly))
  const [days, setDays] = useState("90")
  const [networks, setNetworks] = useState("")
  const ranges = networks.split(/[\s,]+/).filter((one) => one !== "")
  const scopes = may === "all" ? undefined : may === "read" ? readOnly : [...chosen]
  const asked: Asked | undefined =
    scopes?.length === 0
      ? undefined
      : {
          ...(scopes === undefined ? {} : { scopes }),
          ...(days === "" ? {} : { expires_in_days: Number(days) }),
          ...(ranges.length === 0 ? {} : { networks: ranges }),
        }
  return { may, setMay, chosen, setChosen, days, setDays, networks, setNetworks, asked }
}

interface RightsProps {
  readonly of: ReturnType<typeof useRights>
  readonly wrong: (pointer: string) => string | undefined
}

export const RightsFields = ({ of, wrong }: RightsProps) => (
  <>
    <Select
      label={say("may")}
      value={of.may}
      onValue={(value) => of.setMay(value as May)}
      wrong={of.asked === undefined ? say("choose_one") : wrong("/scopes")}
    >
      <option value="all">{say("may_all")}</option>
      <option value="read">{say("may_read")}</option>
      <option value="choose">{say("may_choose")}</option>
    </Select>
    {of.may === "choose" ? (
      <>
        <p class="hint">{say("scopes_hint")}</p>
        <ScopeBoxes names={scopeNames} chosen={of.chosen} onChosen={of.setChosen} />
      </>
    ) : null}
    <DaysSelect value={of.days} onValue={of.setDays} atMost={null} wrong={wrong("/expires_in_days")} />
    <TextArea
      label={say("networks")}
      hint={say("networks_hint")}
      value={of.networks}
      onValue={of.setNetworks}
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
