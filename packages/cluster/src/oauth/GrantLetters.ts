/** Mails to account holders about Grants, in the languages of the console. */
import type { Language } from "@svc/domain/account/Account"
import type { Letter } from "../mail/SystemMailer.ts"

export type NoticeKind = "created" | "refresh_reuse"

interface Words {
  readonly subject: string
  readonly said: (name: string, host: string) => string
  readonly hint: string
}

const words: { readonly [L in Language]: { readonly [K in NoticeKind]: Words } } = {
  en: {
    created: {
      subject: "An app was connected to your agents",
      said: (name, host) => `An app that calls itself "${name}" was connected to your account. Access went to: ${host}`,
      hint: "If that was not you, end it here:",
    },
    refresh_reuse: {
      subject: "The access of an app was ended for safety",
      said: (name, host) =>
        `The app that calls itself "${name}" (${host}) showed a token that had been used before. Somebody else may have had a copy of it, so the access was ended.`,
      hint: "Connect the app again if you use it. What is connected stands here:",
    },
  },
  de: {
    created: {
      subject: "Eine App wurde mit Ihren Agenten verbunden",
      said: (name, host) =>
        `Eine App, die sich „${name}“ nennt, wurde mit Ihrem Konto verbunden. Der Zugang ging an: ${host}`,
      hint: "Falls Sie das nicht waren, beenden Sie ihn hier:",
    },
    refresh_reuse: {
      subject: "Der Zugang einer App wurde vorsorglich beendet",
      said: (name, host) =>
        `Die App, die sich „${name}“ nennt (${host}), hat ein Token vorgelegt, das schon benutzt war. Jemand anderes könnte eine Kopie davon haben; deshalb wurde der Zugang beendet.`,
      hint: "Verbinden Sie die App neu, falls Sie sie benutzen. Was verbunden ist, steht hier:",
    },
  },
  fr: {
    created: {
      subject: "Une application a été connectée à vos agents",
      said: (name, host) =>
        `Une application qui se nomme « ${name} » a été connectée à votre compte. L'accès est allé à : ${host}`,
      hint: "Si ce n'était pas vous, mettez-y fin ici :",
    },
    refresh_reuse: {
      subject: "L'accès d'une application a été arrêté par précaution",
      said: (name, host) =>
        `L'application qui se nomme « ${name} » (${host}) a présenté un jeton déjà utilisé. Quelqu'un d'autre en a peut-être une copie ; l'accès a donc été arrêté.`,
      hint: "Reconnectez l'application si vous l'utilisez. Ce qui est connecté se trouve ici :",
    },
  },
}

export const grantLetter = (options: {
  readonly kind: NoticeKind
  readonly to: string
  readonly language: Language
  /** The client's own name: one line, at most 60 characters. */
  readonly name: string
  readonly host: string
  readonly keysUrl: string
}): Letter => {
  const say = words[options.language][options.kind]
  return {
    to: options.to,
    subject: say.subject,
    text: `${say.said(options.name, options.host)}\n\n${say.hint}\n\n${options.keysUrl}\n`,
  }
}
