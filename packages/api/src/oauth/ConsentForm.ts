/**
 * The form on which an account holder decides about an app. The verified recipient of the access is shown largest. The
 * default is reading as one Identity; more is never preselected.
 */
import type { Org } from "@svc/domain/account/Account"
import { hostOf, receiverOf } from "@svc/domain/oauth/Redirect"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import type { Choice, PresentGrant } from "@svc/cluster/oauth/Grants"
import { Schema } from "effect"
import { getDomain } from "tldts"
import { escape } from "../pages/Page.ts"
import type { Wanted } from "./AuthorizationRequest.ts"
import { authorizePath as path } from "../pages/BrowserCookie.ts"
import { type ConsentTexts, words } from "./ConsentTexts.ts"
import { grantable, offered, readAndAct, readOnly, vaultValues } from "./OfferedScopes.ts"

const lives = [90, 30, 365] as const

interface Shown {
  readonly wanted: Wanted
  readonly org: Org
  readonly identities: ReadonlyArray<Pick<IdentityRef, "id" | "handle">>
  readonly present: PresentGrant | undefined
  readonly request: string
  /** Binds the form to the session and the request. */
  readonly seal: string
  /** The error of the previous submission. */
  readonly notice?: string
}

/** The submitted form; checkboxes may occur once, repeatedly or not at all. */
const Several = Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))
export const Decision = Schema.Struct({
  request: Schema.String.check(Schema.isUUID()),
  seal: Schema.String.check(Schema.isMaxLength(500)),
  decision: Schema.Literals(["allow", "deny"]),
  agents: Schema.optionalKey(Schema.Literals(["one", "these", "all"])),
  one: Schema.optionalKey(Schema.String),
  identity: Several,
  rights: Schema.optionalKey(Schema.Literals(["read", "act", "choose"])),
  scope: Several,
  vault: Schema.optionalKey(Schema.String),
  days: Schema.optionalKey(Schema.Literals(["90", "30", "365"])),
})
export type Decision = typeof Decision.Type

const several = (value: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  value === undefined ? [] : typeof value === "string" ? [value] : value

/** Returns the scopes of each preset, limited to those that the app requested. */
const presetsOf = ({ scopes }: Wanted) => {
  const requestedOf = (names: ReadonlyArray<string>) => names.filter((name) => scopes.includes(name))
  return { read: requestedOf(readOnly), act: requestedOf(readAndAct) }
}

/** Returns what the account holder allows, or undefined if the form names no Identity or no scope. */
export const choiceOf = (decision: Decision, wanted: Wanted): Choice | undefined => {
  const identities =
    decision.agents === "all" ? null : decision.agents === "these" ? several(decision.identity) : several(decision.one)
  const chosen =
    decision.rights === "choose"
      ? several(decision.scope).filter((name) => grantable.has(name) && name !== vaultValues)
      : presetsOf(wanted)[decision.rights ?? "read"]
  const scopes = [...new Set([...chosen, ...(decision.vault === "yes" ? [vaultValues] : [])])]
  return scopes.length === 0 || identities?.length === 0
    ? undefined
    : { scopes, identities, days: Number(decision.days ?? "90") }
}

const same = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) =>
  one.length === other.length && one.every((name) => other.includes(name))

const paragraph = (text: string, kind = "") => `<p${kind === "" ? "" : ` class="${kind}"`}>${escape(text)}</p>`

const input = (type: "radio" | "checkbox", name: string, value: string, checked: boolean) =>
  `<input type="${type}" name="${name}" value="${escape(value)}"${checked ? " checked" : ""}>`

const receiverLines = (say: ConsentTexts, { client, redirect }: Wanted): string => {
  const receiver = receiverOf(redirect)
  const host = hostOf(redirect)
  const proved =
    receiver._tag === "Site"
      ? `<p class="receiver"><bdi>${escape(receiver.host)}</bdi></p>${paragraph(say.site)}`
      : `<p class="receiver"><bdi>${escape(host)}</bdi></p>${paragraph(receiver._tag === "Program" ? say.program(receiver.port) : say.app(receiver.scheme))}`
  if (client.describedBy === null) return proved
  const isForeign =
    receiver._tag === "Site" &&
    (getDomain(receiver.host, { allowPrivateDomains: true }) ?? receiver.host) !==
      (getDomain(client.describedBy, { allowPrivateDomains: true }) ?? client.describedBy)
  return `${proved}${isForeign ? paragraph(say.foreign(client.describedBy, host), "warning") : paragraph(say.described(client.describedBy), "small")}`
}

const agentChoice = (say: ConsentTexts, { identities, present }: Shown): string => {
  const old = present?.identities ?? null
  const [first] = identities
  const isOne = old === null || (old.length === 1 && old[0] === first?.id)
  const one =
    first === undefined
      ? paragraph(say.noAgents)
      : `<label>${input("radio", "agents", "one", isOne)} ${escape(say.only(first.handle))}</label><input type="hidden" name="one" value="${first.id}">`
  const these =
    identities.length < 2
      ? ""
      : `<label>${input("radio", "agents", "these", !isOne)} ${escape(say.these)}</label><div class="within">${identities
          .map(
            ({ id, handle }) =>
              `<label>${input("checkbox", "identity", id, !isOne && old.includes(id))} @${escape(handle)}</label>`,
          )
          .join(" ")}</div>`
  return `<fieldset><legend>${escape(say.agents)}</legend>${one}${these}<label>${input("radio", "agents", "all", false)} ${escape(say.whole)}</label></fieldset>`
}

const rightChoice = (say: ConsentTexts, { present, wanted }: Shown): string => {
  const old = present?.scopes.filter((name) => name !== vaultValues && !name.endsWith(":admin"))
  const { read, act } = presetsOf(wanted)
  const offersRead = read.length > 0
  const offersAct = act.length > read.length
  const preset =
    offersRead && (old === undefined || same(old, read))
      ? "read"
      : offersAct && old !== undefined && same(old, act)
        ? "act"
        : "choose"
  const rows = offered
    .map(({ capability, actions }) => {
      const boxes = actions
        .filter((action) => `${capability}:${action}` !== vaultValues)
        .map((action) => {
          const name = `${capability}:${action}`
          return `<label>${input("checkbox", "scope", name, preset === "choose" && old?.includes(name) === true)} ${escape(say.actions[action])}</label>`
        })
      return boxes.length === 0 ? "" : `<div>${escape(say.capabilities[capability])}: ${boxes.join(" ")}</div>`
    })
    .join("")
  const right = (value: "read" | "act" | "choose", text: string) =>
    `<label>${input("radio", "rights", value, preset === value)} ${escape(text)}</label>`
  return `<fieldset><legend>${escape(say.rights)}</legend>${offersRead ? right("read", say.read) : ""}${offersAct ? right("act", say.act) : ""}${right("choose", say.choose)}<div class="within">${rows}</div>
<label>${input("checkbox", "vault", "yes", false)} ${escape(say.vault)}</label></fieldset>`
}

/** Returns a line with the current access of the app. A repeated authorization shows it and does not extend it. */
const presentLine = (say: ConsentTexts, { present, identities }: Shown): string => {
  if (present === undefined) return ""
  const who =
    present.identities === null
      ? say.whole
      : identities
          .flatMap(({ id, handle }) => (present.identities?.includes(id) === true ? [`@${handle}`] : []))
          .join(", ")
  return `<p class="told">${escape(say.before)} ${escape(who)}; <code>${escape(present.scopes.join(" "))}</code></p>`
}

export const body = (shown: Shown): string => {
  const { wanted, org, request, seal } = shown
  const say = words[org.language]
  const { name } = wanted.client
  const days = lives.map(
    (one, at) => `<label>${input("radio", "days", String(one), at === 0)} ${escape(say.days(one))}</label>`,
  )
  return `<h1><bdi>${escape(say.title(name))}</bdi></h1>
${receiverLines(say, wanted)}
<p>${escape(say.calls(name))} ${escape(say.unchecked)}</p>
<p>${escape(say.account)} <strong>${escape(org.email)}</strong> (<a href="${path}?continue=${request}&amp;as=other">${escape(say.notYou)}</a>)</p>
${presentLine(say, shown)}${shown.notice === undefined ? "" : `<p class="told" role="alert">${escape(shown.notice)}</p>`}
<form method="post" action="${path}"><input type="hidden" name="request" value="${request}"><input type="hidden" name="seal" value="${escape(seal)}">
${agentChoice(say, shown)}
${rightChoice(say, shown)}
<p class="small">${escape(say.asks)} <code>${escape(wanted.scopes.join(" "))}</code></p>
<fieldset><legend>${escape(say.until)}</legend><div class="within">${days.join(" ")}</div>${paragraph(say.ends, "small")}</fieldset>
<p><button name="decision" value="allow" class="quiet">${escape(say.allow)}</button> <button name="decision" value="deny" class="quiet">${escape(say.deny)}</button></p>
${paragraph(say.sent)}</form>`
}
