/** The problem of a failed request: title, detail, next step and request id. */
import type { ComponentChildren } from "preact"
import { Refused, Unreachable, type Problem } from "../client/Client.ts"
import { Button } from "./Button.tsx"
import { CopyButton } from "./Copy.tsx"
import { say } from "./texts.ts"
import type { Code } from "@svc/domain/problems/Table"
import { language } from "../texts/Texts.ts"

/** Problems that a browser can meet; English titles come with the response. */
const titles: { readonly [K in Code]?: readonly [de: string, fr: string] } = {
  invalid_request: ["Die Eingabe ist nicht gültig", "La saisie n’est pas valide"],
  invalid_cursor: ["Die Position in der Liste ist ungültig", "La position dans la liste n’est pas valide"],
  not_found: ["Nicht gefunden", "Introuvable"],
  payload_too_large: ["Die Eingabe ist zu groß", "La saisie est trop grande"],
  conflict: ["Konflikt mit dem aktuellen Zustand", "Conflit avec l’état actuel"],
  precondition_failed: ["Inzwischen geändert", "Modifié entre-temps"],
  rate_limited: ["Zu viele Aufrufe", "Trop d’appels"],
  unavailable: ["Ein Teil des Dienstes ist nicht erreichbar", "Une partie du service est injoignable"],
  internal: ["Bei uns ist etwas schiefgegangen", "Une erreur s’est produite chez nous"],
  audit_unavailable: [
    "Das Audit-Protokoll ist derzeit nicht erreichbar",
    "Le journal d’audit est temporairement indisponible",
  ],
  idempotency_key_in_progress: [
    "Die erste Anfrage wird noch ausgeführt",
    "La première requête est encore en cours d’exécution",
  ],
  unauthenticated: ["Du bist nicht angemeldet", "Vous n’êtes pas connecté"],
  account_deleting: ["Das Konto wird gelöscht", "Le compte est en cours de suppression"],
  session_required: ["Anmeldung in der Konsole erforderlich", "Connexion à la console requise"],
  admin_required: ["Nur der Kontoinhaber ist dazu berechtigt", "Réservé au titulaire du compte"],
  invite_required: ["Zum Registrieren ist eine Einladung erforderlich", "Une invitation est requise pour s’inscrire"],
  tos_not_accepted: ["Die Nutzungsbedingungen müssen akzeptiert werden", "Les conditions doivent être acceptées"],
  tos_version_mismatch: [
    "Diese Fassung der Bedingungen gilt nicht mehr",
    "Cette version des conditions n’est plus la bonne",
  ],
  device_authorization_settled: ["Diese Anmeldung ist schon entschieden", "Cette demande a déjà été traitée"],
  key_quota_exhausted: ["Das Kontingent an Schlüsseln ist aufgebraucht", "Le quota de clés est épuisé"],
  key_replaced: ["Der Schlüssel wurde schon erneuert", "La clé a déjà été renouvelée"],
  confirmation_mismatch: ["Die Bestätigung stimmt nicht", "La confirmation ne correspond pas"],
  handle_taken: ["Der Name ist vergeben", "Le nom est pris"],
  handle_reserved: ["Der Name ist reserviert", "Le nom est réservé"],
  handle_invalid: ["Der Name ist nicht gültig", "Le nom n’est pas valide"],
  identity_busy: ["Die Identität wird gerade eingerichtet", "L’identité est en cours de création"],
  identity_not_ready: ["Die Identität ist nicht bereit", "L’identité n’est pas prête"],
  identity_quota_exhausted: ["Das Kontingent an Identitäten ist aufgebraucht", "Le quota d’identités est épuisé"],
  recipient_not_allowed: ["Ein Empfänger ist nicht erlaubt", "Un destinataire n’est pas autorisé"],
  content_changed: ["Die Nachricht hat sich geändert", "Le message a changé"],
  mail_paused: ["Der E-Mail-Versand ist gestoppt", "L’envoi d’e-mails est suspendu"],
  message_invalid: ["Die Nachricht ist nicht gültig", "Le message n’est pas valide"],
  message_too_large: ["Die Nachricht ist zu groß", "Le message est trop volumineux"],
  mail_relay_unavailable: ["Die E-Mail konnte nicht übergeben werden", "Le message n’a pas pu être remis"],
  webhook_target_refused: ["Diese Adresse ist als Ziel nicht erlaubt", "Cette adresse n’est pas admise comme cible"],
  webhook_mismatch: ["Der Webhook gehört zu einer anderen Identität", "Le webhook appartient à une autre identité"],
  connector_capability_unsupported: [
    "Der Konnektor unterstützt diese Aktion nicht",
    "Le connecteur ne permet pas cette opération",
  ],
  connector_credential_refused: ["Die Plattform lehnt die Zugangsdaten ab", "La plateforme a refusé les identifiants"],
  connector_not_connected: [
    "Die Identität ist nicht mit dieser Plattform verbunden",
    "L’identité n’est pas connectée à cette plateforme",
  ],
  connector_paused: ["Der Konnektor ist pausiert", "Le connecteur est en pause"],
  connector_platform_error: [
    "Die Plattform hat die Anfrage nicht ausgeführt",
    "La plateforme n’a pas exécuté la requête",
  ],
  connector_platform_rate_limited: [
    "Das Limit der Plattform ist erreicht",
    "La limite d’appels de la plateforme est atteinte",
  ],
  connector_state_invalid: ["Diese Autorisierung gilt nicht mehr", "Cette autorisation n’est plus valable"],
  connector_stopped: ["Der Konnektor ist gestoppt", "Le connecteur est arrêté"],
  secret_name_invalid: ["Der Name des Geheimnisses ist nicht gültig", "Le nom du secret n’est pas valide"],
}

export const titleOf = ({ code, title }: Problem): string =>
  language.value === "en" ? title : (titles[code]?.[language.value === "de" ? 0 : 1] ?? title)

interface ProblemProps {
  readonly failure: Error | undefined
  readonly onRetry?: () => void
  readonly children?: ComponentChildren
}

export const ProblemNote = ({ failure, onRetry, children }: ProblemProps) => {
  if (failure === undefined) return null
  const problem = failure instanceof Refused ? failure.problem : undefined
  const seconds = problem?.retry_after_seconds
  return (
    <div class="note" data-tone="bad" role="alert">
      <strong>
        {problem === undefined ? say(failure instanceof Unreachable ? "unreachable" : "broken") : titleOf(problem)}
      </strong>
      {problem === undefined ? (
        <p>{failure instanceof Unreachable ? say("unreachable_why") : failure.message}</p>
      ) : (
        <>
          <p>{problem.detail}</p>
          <p class="muted small">
            {problem.agent_hint === "wait" && seconds !== undefined
              ? say("wait_seconds", { count: seconds })
              : say(problem.agent_hint)}{" "}
            <a href={`/problems/${problem.code}`} target="_blank" rel="noopener">
              {say("what_it_means")}
            </a>
          </p>
        </>
      )}
      {children}
      <div class="bar">
        {onRetry === undefined ? null : (
          <Button small icon="again" onClick={onRetry}>
            {say("retry")}
          </Button>
        )}
        {problem === undefined ? null : (
          <span class="bar small muted">
            {say("request")} <code>{problem.instance}</code>
            <CopyButton value={problem.instance} what={problem.instance} />
          </span>
        )}
      </div>
    </div>
  )
}

/** The problems of commands whose controls are side by side: a command replaces only its own problem. */
export const ProblemNotes = ({ of }: { readonly of: ReadonlyArray<Pick<ProblemProps, "failure">> }) => (
  <>
    {of.map(({ failure }, index) => (
      <ProblemNote key={index} failure={failure} />
    ))}
  </>
)
