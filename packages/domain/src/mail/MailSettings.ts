/** Mail settings: Allowed Recipients, the disclosure in outgoing messages, and whether outgoing mail is stopped. */
import { Schema } from "effect"
import { CredentialKind, type Language } from "../account/Account.ts"
import { ShownEmail, Text } from "../Text.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"

export const AllowedRecipient = Schema.Struct({
  address: ShownEmail,
  /** `manual` and `account_owner` do not expire; `inbound` expires 30 days after the last verified message. */
  reason: Schema.Literals(["manual", "account_owner", "inbound"]),
  expired: Schema.Boolean,
  created_at: Timestamp,
  expires_at: TimestampOrNull,
  /** Set if the address is suppressed because mail to it bounced. The suppression can be lifted. */
  suppressed: Schema.NullOr(Schema.Struct({ since: Timestamp, reason: Schema.String })),
}).annotate({ identifier: "AllowedRecipient" })
export type AllowedRecipient = typeof AllowedRecipient.Type

export const AiDisclosure = Schema.Struct({
  text: Schema.String,
  html: Schema.String,
  overridden: Schema.Boolean,
  updated_at: TimestampOrNull,
}).annotate({ identifier: "AiDisclosure" })
export type AiDisclosure = typeof AiDisclosure.Type

export const DisclosureText = Text.check(
  Schema.isMaxLength(1000),
  Schema.makeFilter((text: string) => text.trim() !== "", { expected: "a text that is not blank" }),
)

/** The text below every message, in the language of the Org, unless the account holder replaces it. */
export const defaultDisclosure = (handle: string, language: Language): string => wordings[language](handle)

const wordings: { readonly [L in Language]: (handle: string) => string } = {
  en: (handle) => `This message was written and sent by an AI agent (${handle}), not by a person.`,
  de: (handle) => `Diese Nachricht hat ein KI-Agent (${handle}) geschrieben und gesendet, kein Mensch.`,
  fr: (handle) => `Ce message a été rédigé et envoyé par un agent d'IA (${handle}), non par une personne.`,
}

export const disclosureHtml = (text: string) =>
  `<p>${text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(/\r?\n/g, "<br>")}</p>`

const TagFolders = Schema.Boolean.annotate({
  description: "Mail programs show mail to a subaddress tag in a folder `Tags/<tag>` as well as in INBOX.",
})

export const MailStatus = Schema.Struct({
  outgoing: Schema.Literals(["active", "stopped"]),
  stopped_at: TimestampOrNull,
  stopped_by: Schema.NullOr(Schema.Union([CredentialKind, Schema.Literal("system")])),
  reason: Schema.NullOr(Schema.String),
  /** `required`: mail that the Identity Key sends awaits the approval of a person. */
  approval: Schema.Literals(["none", "required"]),
  tag_folders: TagFolders,
}).annotate({ identifier: "MailStatus" })
export type MailStatus = typeof MailStatus.Type

const Reason = Schema.optionalKey(Schema.NullOr(Text.check(Schema.isMaxLength(500))))

export const MailPatch = Schema.Struct({
  outgoing: Schema.optionalKey(Schema.Literals(["active", "stopped"])),
  reason: Reason,
  approval: Schema.optionalKey(Schema.Literals(["none", "required"])),
  tag_folders: Schema.optionalKey(TagFolders),
})
export type MailPatch = typeof MailPatch.Type

/** Stops or starts outgoing mail for all Identities of the Org. */
export const OrgMailPatch = Schema.Struct({ outgoing: Schema.Literals(["active", "stopped"]), reason: Reason })
export type OrgMailPatch = typeof OrgMailPatch.Type

export const OrgMailStatus = Schema.Struct({
  outgoing: Schema.Literals(["active", "stopped"]),
  stopped_at: TimestampOrNull,
  stopped_by: Schema.NullOr(CredentialKind),
  reason: Schema.NullOr(Schema.String),
  /** Number of Identities whose mail is currently held. */
  identities: Schema.Int,
}).annotate({ identifier: "OrgMailStatus" })
export type OrgMailStatus = typeof OrgMailStatus.Type

/** The Identities whose outgoing mail is stopped. */
export const StoppedMail = Schema.Struct({
  stopped: Schema.Array(Schema.String).annotate({
    description: "The Handles of the Identities whose outgoing mail is stopped, oldest Identity first.",
  }),
}).annotate({ identifier: "StoppedMail" })
