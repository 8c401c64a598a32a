/**
 * The A2A Card: its editable fields, the merge patch that changes them (RFC 7396), and the A2A 1.0 document that the
 * public profile serves (interface.md "A2A Card", decisions.md "Smaller decisions").
 */
import { Schema } from "effect"
import { type AddressBook, tunnelUrl } from "../Addresses.ts"
import { basisOf, StoredSignatures, withSignatures } from "./CardSignature.ts"
import { Line, ShownEmail, ShownUrl, Text, Url } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

const HttpsUrl = Url(["https:"], "an absolute https URL")
const AnyUrl = Url(["https:", "http:"], "an absolute URL")

/** A media type (RFC 9110 section 8.3.1). Parameter values are not validated. */
const MediaType = Text.check(
  Schema.isMaxLength(200),
  Schema.isPattern(/^[\w!#$&^.+-]+\/[\w!#$&^.+*-]+(?:\s*;\s*[ -~]*)?$/u, {
    expected: "a media type",
  }),
)
const Modes = Schema.NonEmptyArray(MediaType).check(Schema.isMaxLength(50))

const Interface = Schema.Struct({
  url: AnyUrl,
  protocol_binding: Line(200),
  protocol_version: Line(50),
})

const Skill = Schema.Struct({
  id: Line(100),
  name: Line(200),
  description: Text.check(Schema.isMaxLength(2000)),
  tags: Schema.optionalKey(Schema.Array(Line(100)).check(Schema.isMaxLength(50))),
  examples: Schema.optionalKey(Schema.Array(Text.check(Schema.isMaxLength(2000))).check(Schema.isMaxLength(50))),
  input_modes: Schema.optionalKey(Modes),
  output_modes: Schema.optionalKey(Modes),
})

const Skills = Schema.Array(Skill).check(
  Schema.isMaxLength(200),
  Schema.makeFilter(
    (skills: ReadonlyArray<{ readonly id: string }>) => new Set(skills.map(({ id }) => id)).size === skills.length,
    { expected: "skills with distinct ids" },
  ),
)

const Provider = Schema.Struct({ organization: Line(200), url: AnyUrl })

const CardFields = Schema.Struct({
  name: Line(200),
  description: Text.check(Schema.isMaxLength(2000)),
  version: Line(64),
  documentation_url: Schema.NullOr(HttpsUrl),
  icon_url: Schema.NullOr(HttpsUrl),
  provider: Schema.NullOr(Provider),
  capabilities: Schema.Struct({
    streaming: Schema.Boolean,
    push_notifications: Schema.Boolean,
    extended_agent_card: Schema.Boolean,
  }),
  default_input_modes: Modes,
  default_output_modes: Modes,
  interfaces: Schema.NonEmptyArray(Interface).check(Schema.isMaxLength(20)),
  skills: Skills,
})
type CardFields = typeof CardFields.Type

const fields = CardFields.fields

/**
 * A merge patch: omitted members keep their values, null clears nullable members, arrays are replaced, `capabilities`
 * is merged.
 */
export const CardPatch = Schema.Struct({
  name: Schema.optionalKey(fields.name),
  description: Schema.optionalKey(fields.description),
  version: Schema.optionalKey(fields.version),
  documentation_url: Schema.optionalKey(fields.documentation_url),
  icon_url: Schema.optionalKey(fields.icon_url),
  provider: Schema.optionalKey(fields.provider),
  capabilities: Schema.optionalKey(
    Schema.Struct({
      streaming: Schema.optionalKey(Schema.Boolean),
      push_notifications: Schema.optionalKey(Schema.Boolean),
      extended_agent_card: Schema.optionalKey(Schema.Boolean),
    }),
  ),
  default_input_modes: Schema.optionalKey(fields.default_input_modes),
  default_output_modes: Schema.optionalKey(fields.default_output_modes),
  interfaces: Schema.optionalKey(fields.interfaces),
  skills: Schema.optionalKey(fields.skills),
}).annotate({ identifier: "CardPatch" })
export type CardPatch = typeof CardPatch.Type

/**
 * The stored card. Null `interfaces` means the Identity's own Tunnel, whose address comes from the configuration.
 */
export const StoredCard = Schema.Struct({
  ...fields,
  interfaces: Schema.NullOr(fields.interfaces),
  description: Schema.String,
})
export type StoredCard = typeof StoredCard.Type

/** The stored card with its version, and whether its Tunnel requires a password. */
export const KeptCard = Schema.Struct({
  fields: StoredCard,
  version: Schema.Int,
  updated_at: Schema.Date,
  locked: Schema.Boolean,
  /** The stored signatures, possibly of another version. */
  signatures: Schema.optionalKey(Schema.NullOr(StoredSignatures)),
})
export type KeptCard = typeof KeptCard.Type

export const merge = (card: StoredCard, patch: CardPatch): StoredCard => ({
  ...card,
  ...patch,
  capabilities: { ...card.capabilities, ...patch.capabilities },
})

/** The default interface: the Identity's Tunnel. */
const tunnelInterface = (book: AddressBook, handle: string) =>
  ({ url: tunnelUrl(book, handle), protocol_binding: "JSONRPC", protocol_version: "1.0" }) as const

export const fieldsOf = (book: AddressBook, handle: string, card: StoredCard): CardFields => ({
  ...card,
  interfaces: card.interfaces ?? [tunnelInterface(book, handle)],
})

/** The A2A 1.0 agent card. It is the JSON form of a protobuf message, so absent members are omitted. */
const A2aCard = Schema.Record(Schema.String, Schema.Unknown).annotate({
  identifier: "A2aAgentCard",
  description: "The agent card in A2A 1.0 format, as served at the card's public address.",
})

/** Security of a Tunnel that requires a password (A2A 1.0, HTTPAuthSecurityScheme). */
const passwordSecurity = {
  securitySchemes: { tunnel: { httpAuthSecurityScheme: { scheme: "Basic" } } },
  securityRequirements: [{ schemes: { tunnel: { list: [] } } }],
} as const

/** Returns the A2A document. `locked` means that the Identity's Tunnel requires a password. */
export const documentOf = (
  book: AddressBook,
  handle: string,
  card: CardFields,
  locked: boolean,
): Record<string, unknown> => ({
  name: card.name,
  description: card.description,
  supportedInterfaces: card.interfaces.map((one) => ({
    url: one.url,
    protocolBinding: one.protocol_binding,
    protocolVersion: one.protocol_version,
  })),
  ...(card.provider === null ? {} : { provider: card.provider }),
  version: card.version,
  ...(card.documentation_url === null ? {} : { documentationUrl: card.documentation_url }),
  ...(card.icon_url === null ? {} : { iconUrl: card.icon_url }),
  capabilities: {
    streaming: card.capabilities.streaming,
    pushNotifications: card.capabilities.push_notifications,
    extendedAgentCard: card.capabilities.extended_agent_card,
  },
  ...(locked && card.interfaces.some(({ url }) => url.startsWith(tunnelUrl(book, handle))) ? passwordSecurity : {}),
  defaultInputModes: card.default_input_modes,
  defaultOutputModes: card.default_output_modes,
  skills: card.skills.map((skill) => ({
    id: skill.id,
    name: skill.name,
    description: skill.description,
    tags: skill.tags ?? [],
    ...(skill.examples === undefined ? {} : { examples: skill.examples }),
    ...(skill.input_modes === undefined ? {} : { inputModes: skill.input_modes }),
    ...(skill.output_modes === undefined ? {} : { outputModes: skill.output_modes }),
  })),
})

/** The editable fields and the document that is generated from them. */
export const Card = Schema.Struct({ ...fields, card: A2aCard, updated_at: Timestamp }).annotate({ identifier: "Card" })
export type Card = typeof Card.Type

/** Returns the card as its owner sees it. */
export const cardOf = (
  book: AddressBook,
  handle: string,
  { fields: stored, updated_at, locked, version, signatures = null }: KeptCard,
): Card => {
  const fields = fieldsOf(book, handle, stored)
  const document = documentOf(book, handle, fields, locked)
  return { ...fields, card: withSignatures(document, signatures, basisOf(book, handle, version, locked)), updated_at }
}

/** The content of the profile page, and the card. */
export const Profile = Schema.Struct({
  handle: Schema.String,
  name: Schema.String,
  description: Schema.String,
  email: ShownEmail,
  profile_url: ShownUrl,
  card_url: ShownUrl,
  provider: fields.provider,
  skills: fields.skills,
  card: A2aCard,
  created_at: Timestamp,
}).annotate({ identifier: "Profile" })
export type Profile = typeof Profile.Type
