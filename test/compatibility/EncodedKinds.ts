/**
 * Everything that one version of the program writes and another version may read: messages between processes, and JSON in the store.
 * docs/upgrade.md has the rules.
 */
import { ConnectorActor } from "@svc/domain/connectors/ConnectorProtocol"
import { OrgActor } from "@svc/domain/account/OrgProtocol"
import { StoredCard } from "@svc/domain/card/Card"
import { Post } from "@svc/domain/connectors/Post"
import { eventData } from "@svc/domain/events/Event"
import { Saga } from "@svc/domain/identity/Identity"
import { IdentityActor } from "@svc/domain/IdentityActor"
import { Header } from "@svc/domain/mail/Message"
import { NewMail } from "@svc/domain/mail/Sending"
import { TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import { Schema } from "effect"
import { SchemaBinary } from "effect/encoding"
import { Rpc } from "effect/rpc"

/** One kind of message or stored value. */
export interface EncodedKind {
  readonly schema: Schema.Codec<unknown, unknown>
  /** Encodes to text and decodes it. */
  readonly write: (value: unknown) => string
  readonly read: (text: string) => unknown
}

const message = (schema: Schema.Codec<unknown, unknown>): EncodedKind => {
  const codec = SchemaBinary.toCodec(schema)
  const [encode, decode] = [Schema.encodeSync(codec), Schema.decodeUnknownSync(codec)]
  return {
    schema,
    write: (value) => Buffer.from(encode(value)).toString("base64"),
    read: (text) => decode(new Uint8Array(Buffer.from(text, "base64"))),
  }
}

const stored = (schema: Schema.Codec<unknown, unknown>): EncodedKind => {
  const codec = Schema.fromJsonString(Schema.toCodecJson(schema))
  return { schema, write: Schema.encodeSync(codec), read: Schema.decodeUnknownSync(codec) }
}

/** Converts the type of any schema; no schema here requires services. */
const plain = (schema: Schema.Constraint) => schema as unknown as Schema.Codec<unknown, unknown>

const messages = [IdentityActor, OrgActor, ConnectorActor].flatMap(({ type, protocol }) =>
  [...protocol.requests.values()].flatMap((rpc): ReadonlyArray<readonly [string, EncodedKind]> => [
    [`${type}.${rpc._tag} asked`, message(plain(rpc.payloadSchema))],
    [`${type}.${rpc._tag} answered`, message(plain(Rpc.exitSchema(rpc)))],
  ]),
)

const records = { Saga, NewMail, TunnelSettings, StoredCard, Post, Headers: Schema.Array(Header) }

export const encodedKinds: Readonly<Record<string, EncodedKind>> = Object.fromEntries([
  ...messages,
  ...Object.entries(eventData).map(([type, schema]) => [`Event ${type}`, stored(plain(schema))] as const),
  ...Object.entries(records).map(([name, schema]) => [`Record ${name}`, stored(plain(schema))] as const),
])
