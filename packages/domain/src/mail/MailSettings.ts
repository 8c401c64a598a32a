/** Who may be written to, what every outgoing message says of its author, and whether mail goes out at all. */
import { Schema } from "effect"
import { CredentialKind } from "../account/Account.ts"
import { ShownEmail, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

export const AllowedRecipient = Schema.Struct({
  address: ShownEmail,
  /** `manual` and `account_owner` never lapse, `inbound` 30 days after the last verified message. */
  reason: Schema.Literals(["manual", "account_owner", "inbound"]),
  expired: Schema.Boolean,
  created_at: Timestamp,
  expires_at: Schema.NullOr(Timestamp),
}).annotate({ identifier: "AllowedRecipient" })
export type AllowedRecipient = typeof AllowedRecipient.Type

export const AiDisclosure = Schema.Struct({
  text: Schema.String,
  html: Schema.String,
  overridden: Schema.Boolean,
  updated_at: Schema.NullOr(Timestamp),
}).annotate({ identifier: "AiDisclosure" })
export type AiDisclosure = typeof AiDisclosure.Type

export const DisclosureText = Text.check(
  Schema.isMaxLength(1000),
  Schema.makeFilter((text: string) => text.trim() !== "", { expected: "a text that says something" }),
)

/** What goes under every message unless the account holder words it otherwise. */
export const defaultDisclosure = (handle: string) =>
  `This message was written and sent by an AI agent (${handle}), not by a person.`

export const disclosureHtml = (text: string) =>
  `<p>${text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(/\r?\n/g, "<br>")}</p>`

export const MailStatus = Schema.Struct({
  outgoing: Schema.Literals(["active", "stopped"]),
  stopped_at: Schema.NullOr(Timestamp),
  stopped_by: Schema.NullOr(Schema.Union([CredentialKind, Schema.Literal("system")])),
  reason: Schema.NullOr(Schema.String),
}).annotate({ identifier: "MailStatus" })
export type MailStatus = typeof MailStatus.Type

export const MailPatch = Schema.Struct({
  outgoing: Schema.Literals(["active", "stopped"]),
  reason: Schema.optionalKey(Schema.NullOr(Text.check(Schema.isMaxLength(500)))),
})
export type MailPatch = typeof MailPatch.Type
