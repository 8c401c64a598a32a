/** The page on which an account holder approves or denies a device login and limits the key that the device receives. */
import type { Language } from "@svc/domain/account/Account"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { DeviceView } from "@svc/domain/account/Device"
import { judgeRights } from "@svc/domain/account/KeyRights"
import { everything } from "@svc/domain/account/Scope"
import { isScope, scopeNames } from "@svc/domain/ScopeTable"
import { Devices } from "@svc/cluster/account/Devices"
import { Audit } from "@svc/cluster/audit/Audit"
import { Clock, Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { outcomeOf, pageOperation } from "../audit/AuditedOperations.ts"
import { RequestContext, RequestId } from "../RequestContext.ts"
import { escape, laterPage, page } from "./Page.ts"
import { fromOurPages, signedIn } from "./SessionCookie.ts"
import { readCode, signInForm } from "./SignInPage.ts"
import { languageFor, orLater } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"

const words = texts({
  title: ["Approve a device", "Gerät bestätigen", "Approuver un appareil"],
  type: [
    "Enter the code that the terminal shows.",
    "Gib den Code ein, den das Terminal anzeigt.",
    "Saisissez le code qu’affiche le terminal.",
  ],
  code: ["Code", "Code", "Code"],
  proceed: ["Continue", "Weiter", "Continuer"],
  unknown: [
    "No device is waiting with this code. Check the code in the terminal.",
    "Mit diesem Code wartet kein Gerät. Prüfe den Code im Terminal.",
    "Aucun appareil n’attend avec ce code. Vérifiez le code dans le terminal.",
  ],
  ask: [
    "Give this device an Admin Key?",
    "Diesem Gerät einen Admin Key geben?",
    "Donner une clé Admin à cet appareil ?",
  ],
  keyName: ["Key name", "Name des Schlüssels", "Nom de la clé"],
  askedBy: ["Requested by", "Angefragt von", "Demandé par"],
  notSaid: ["not specified", "nicht angegeben", "non précisé"],
  account: ["Account", "Konto", "Compte"],
  care: [
    "Approve only if your own terminal shows this code.",
    "Bestätige nur, wenn dein eigenes Terminal diesen Code anzeigt.",
    "N’approuvez que si votre propre terminal affiche ce code.",
  ],
  may: ["Permissions", "Berechtigungen", "Autorisations"],
  everything: ["Full access of an Admin Key", "Voller Zugriff eines Admin Keys", "Accès complet d’une clé Admin"],
  readOnly: [
    "Read only, without secret values",
    "Nur lesen, ohne geheime Werte",
    "Lecture seule, sans valeurs secrètes",
  ],
  until: ["Expires", "Läuft ab", "Expire"],
  days: [
    (days: number) => (days === 1 ? "after 1 day" : `after ${days} days`),
    (days: number) => (days === 1 ? "nach 1 Tag" : `nach ${days} Tagen`),
    (days: number) => (days === 1 ? "après 1 jour" : `après ${days} jours`),
  ],
  revoked: ["when it is revoked", "wenn er widerrufen wird", "à sa révocation"],
  approve: ["Approve", "Bestätigen", "Approuver"],
  deny: ["Deny", "Ablehnen", "Refuser"],
  approved: [
    ["Device approved", "The terminal receives its key in a moment. You can close this page."],
    ["Gerät bestätigt", "Das Terminal erhält gleich seinen Schlüssel. Du kannst diese Seite schließen."],
    ["Appareil approuvé", "Le terminal reçoit sa clé dans un instant. Vous pouvez fermer cette page."],
  ],
  denied: [
    ["Device denied", "No key was created. You can close this page."],
    ["Gerät abgelehnt", "Es wurde kein Schlüssel erstellt. Du kannst diese Seite schließen."],
    ["Appareil refusé", "Aucune clé n’a été créée. Vous pouvez fermer cette page."],
  ],
  nothingChosen: [
    ["No permission selected", "Go back and select at least one permission, or deny the device."],
    ["Keine Berechtigung ausgewählt", "Geh zurück und wähle mindestens eine Berechtigung, oder lehne das Gerät ab."],
    [
      "Aucune autorisation choisie",
      "Revenez en arrière et choisissez au moins une autorisation, ou refusez l’appareil.",
    ],
  ],
  settled: {
    approved: ["This login was approved", "Diese Anmeldung wurde bestätigt", "Cette connexion a été approuvée"],
    denied: ["This login was denied", "Diese Anmeldung wurde abgelehnt", "Cette connexion a été refusée"],
    collected: ["This login is complete", "Diese Anmeldung ist abgeschlossen", "Cette connexion est terminée"],
    expired: ["This login has expired", "Diese Anmeldung ist abgelaufen", "Cette connexion a expiré"],
  },
  anew: [
    "Start a new login in the terminal.",
    "Starte im Terminal eine neue Anmeldung.",
    "Lancez une nouvelle connexion dans le terminal.",
  ],
})
type DeviceTexts = (typeof words)[Language]

const path = "/auth/device"
const CodeQuery = Schema.Struct({ user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))) })
const Decision = Schema.Struct({
  user_code: Schema.String.check(Schema.isMaxLength(100)),
  decision: Schema.Literals(["approve", "deny"]),
  scope: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  days: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{0,3}$/))),
})

const framed = (lang: Language, body: string, status = 200) =>
  page({ title: words[lang].title, lang, body, status, unlisted: true })
const notice = (lang: Language, [title, text]: readonly [string, string], status = 200) =>
  framed(lang, `<h1>${title}</h1><p>${text}</p>`, status)
/** Shows the detail of a problem, which is always English. */
const refused = (lang: Language, { detail, status }: { readonly detail: string; readonly status: number }) =>
  framed(lang, `<h1 lang="en">${escape(detail)}</h1>`, status)

const codeForm = ({ title, type, code, proceed }: DeviceTexts) => `<h1>${title}</h1><p>${type}</p>
<form method="get" action="${path}"><label>${code}<br><input name="user_code" required autocomplete="off" autocapitalize="characters" placeholder="WDJB-MJHT"></label>
<p><button>${proceed}</button></p></form>`
const unknown = (lang: Language) =>
  framed(lang, `${codeForm(words[lang])}<p class="told" role="status">${words[lang].unknown}</p>`, 404)

const readOnly = scopeNames.filter((name) => name.endsWith(":read"))

type RequestedKey = Pick<DeviceView, "user_code" | "name" | "client" | "scopes" | "expires_in_days">

/** Offers to remove each requested scope; full access can be reduced to reading. */
const scopeChoice = ({ scopes }: RequestedKey, say: DeviceTexts) =>
  scopes.includes(everything)
    ? `<p><label>${say.may}<br><select name="scope"><option value="*" selected>${say.everything}</option>
<option value="${readOnly.join(" ")}">${say.readOnly}</option></select></label></p>`
    : `<fieldset><legend>${say.may}</legend>${scopes
        .map(
          (scope) =>
            `<p><label><input type="checkbox" name="scope" value="${escape(scope)}" checked> <code>${escape(scope)}</code></label></p>`,
        )
        .join("")}</fieldset>`

/** Offers lifetimes up to the requested one. */
const endChoice = ({ expires_in_days }: RequestedKey, say: DeviceTexts) => {
  const shorter = [365, 90, 30, 7, 1].filter((days) => expires_in_days === null || days < expires_in_days)
  const option = (days: number) => `<option value="${days}">${say.days(days)}</option>`
  const requestedOption =
    expires_in_days === null ? `<option value="">${say.revoked}</option>` : option(expires_in_days)
  return `<p><label>${say.until}<br><select name="days">${requestedOption}${shorter.map(option).join("")}</select></label></p>`
}

const decisionForm = (device: RequestedKey, email: string, say: DeviceTexts) =>
  `<h1>${say.ask}</h1>
<dl><dt>${say.code}</dt><dd><code>${device.user_code}</code></dd><dt>${say.keyName}</dt><dd>${escape(device.name)}</dd>
<dt>${say.askedBy}</dt><dd>${escape(device.client ?? say.notSaid)}</dd><dt>${say.account}</dt><dd>${escape(email)}</dd></dl>
<p>${say.care}</p>
<form method="post" action="${path}"><input type="hidden" name="user_code" value="${device.user_code}">
${scopeChoice(device, say)}${endChoice(device, say)}
<button name="decision" value="approve">${say.approve}</button> <button name="decision" value="deny" class="quiet">${say.deny}</button></form>`

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const devices = yield* Devices
    const audit = yield* Audit

    yield* router.add(
      "GET",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        const lang = yield* languageFor(caller)
        const say = words[lang]
        const query = yield* Effect.option(HttpServerRequest.schemaSearchParams(CodeQuery))
        const text = query._tag === "Some" ? query.value.user_code : undefined
        const userCode = readCode(text)
        if (caller === undefined) return framed(lang, signInForm(lang, { userCode }))
        if (text === undefined) return framed(lang, codeForm(say))
        if (userCode === undefined) return unknown(lang)
        return yield* devices.view(userCode).pipe(
          Effect.map((device) =>
            device.status === "pending"
              ? framed(lang, decisionForm(device, caller.org.email, say))
              : notice(lang, [say.settled[device.status], say.anew]),
          ),
          Effect.catchTag("not_found", () => Effect.succeed(unknown(lang))),
        )
      }).pipe(orLater),
    )

    const decide = Effect.fnUntraced(function* (caller: CallerInfo | undefined, lang: Language) {
      if (caller === undefined || !(yield* fromOurPages)) return framed(lang, signInForm(lang, {}), 403)
      const { user_code, decision, scope = [], days = "" } = yield* HttpServerRequest.schemaBodyUrlParams(Decision)
      const scopes = [scope].flat().flatMap((one) => one.split(" "))
      if (decision === "approve" && scopes.length === 0) return notice(lang, words[lang].nothingChosen, 400)
      const action = `device_confirmation.${decision}`
      const exchange = yield* RequestContext
      const act = (of: "secret" | "auth") => pageOperation(caller, exchange, { class: of, action, type: "device" })
      if (decision === "deny") {
        return yield* Effect.as(devices.deny(user_code), notice(lang, words[lang].denied)).pipe(
          Effect.onExit((exit) => audit.record({ ...act("auth"), ...outcomeOf(exit) })),
        )
      }
      // Approving creates a key, so a failed audit write fails the approval.
      yield* audit.secret(act("secret"))
      const now = yield* Clock.currentTimeMillis
      yield* devices.approve(
        caller.org.id,
        user_code,
        { scopes, ...(days === "" ? {} : { expires_in_days: Number(days) }) },
        (requested) => judgeRights(caller, requested, isScope, now),
        { kind: caller.kind, credentialId: caller.credentialId, requestId: yield* RequestId },
      )
      return notice(lang, words[lang].approved)
    })

    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        const lang = yield* languageFor(caller)
        return yield* decide(caller, lang).pipe(
          Effect.catchTags({
            not_found: () => Effect.succeed(unknown(lang)),
            scope_exceeds: (problem) => Effect.succeed(refused(lang, problem)),
            key_quota_exhausted: (problem) => Effect.succeed(refused(lang, problem)),
            device_authorization_settled: (problem) => Effect.succeed(refused(lang, problem)),
            audit_unavailable: () => Effect.succeed(laterPage(lang)),
            unavailable: () => Effect.succeed(laterPage(lang)),
          }),
          Effect.catchCause(() => Effect.succeed(framed(lang, codeForm(words[lang]), 400))),
        )
      }).pipe(orLater),
    )
  }),
)
