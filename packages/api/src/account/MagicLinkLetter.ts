/** The sign-in mail. */
import type { Language } from "@svc/domain/account/Account"
import type { Letter } from "@svc/cluster/mail/SystemMailer"
import { texts } from "../Texts.ts"

const words = texts({
  subject: ["Your sign-in link", "Dein Anmeldelink", "Votre lien de connexion"],
  greeting: ["Hello,", "Hallo,", "Bonjour,"],
  instruction: [
    "open this link to sign in:",
    "öffne diesen Link, um dich anzumelden:",
    "ouvrez ce lien pour vous connecter :",
  ],
  button: ["Sign in", "Anmelden", "Se connecter"],
  expiry: [
    "The link works once and expires after 15 minutes.",
    "Der Link gilt einmal und läuft nach 15 Minuten ab.",
    "Ce lien ne fonctionne qu’une fois et expire après 15 minutes.",
  ],
  ignore: [
    "If you did not request it, you can ignore this email.",
    "Falls du ihn nicht angefordert hast, kannst du diese E-Mail ignorieren.",
    "Si vous ne l’avez pas demandé, vous pouvez ignorer cet e-mail.",
  ],
})

/** `link` is a URL of this service with a base64url token and a code, so only its ampersands need escaping in HTML. */
export const magicLinkLetter = (options: {
  readonly to: string
  readonly link: string
  readonly language: Language
}): Letter => {
  const say = words[options.language]
  return {
    to: options.to,
    subject: say.subject,
    text: `${say.greeting}\n\n${say.instruction}\n\n${options.link}\n\n${say.expiry}\n${say.ignore}\n`,
    html: `<!doctype html><html lang="${options.language}"><meta charset="utf-8"><body style="font:16px/1.5 system-ui,sans-serif;color:#111">
<p>${say.greeting}</p><p>${say.instruction}</p>
<p><a href="${options.link.replaceAll("&", "&amp;")}" style="display:inline-block;padding:10px 18px;background:#1a56db;color:#fff;border-radius:6px;text-decoration:none">${say.button}</a></p>
<p style="color:#555">${say.expiry} ${say.ignore}</p></body></html>`,
  }
}
