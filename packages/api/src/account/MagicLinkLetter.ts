/** The sign-in letter in the languages of the console. */
import type { Language } from "@svc/domain/account/Account"
import type { Letter } from "@svc/cluster/mail/SystemMailer"

interface Words {
  readonly subject: string
  readonly greeting: string
  readonly instruction: string
  readonly button: string
  readonly expiry: string
  readonly ignore: string
}

const words: { readonly [L in Language]: Words } = {
  en: {
    subject: "Your sign-in link",
    greeting: "Hello,",
    instruction: "open this link to sign in:",
    button: "Sign in",
    expiry: "It works once and for 15 minutes.",
    ignore: "If you did not ask for it, ignore this message; nothing happens without the link.",
  },
  de: {
    subject: "Ihr Anmeldelink",
    greeting: "Guten Tag,",
    instruction: "mit diesem Link melden Sie sich an:",
    button: "Anmelden",
    expiry: "Er gilt einmal und 15 Minuten lang.",
    ignore:
      "Falls Sie ihn nicht angefordert haben, können Sie diese Nachricht ignorieren; ohne den Link geschieht nichts.",
  },
  fr: {
    subject: "Votre lien de connexion",
    greeting: "Bonjour,",
    instruction: "ouvrez ce lien pour vous connecter :",
    button: "Se connecter",
    expiry: "Il fonctionne une seule fois, pendant 15 minutes.",
    ignore: "Si vous ne l'avez pas demandé, ignorez ce message ; rien ne se passe sans le lien.",
  },
}

/** `link` is our own URL, of a base64url token and a code: in HTML only its ampersand is escaped. */
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
