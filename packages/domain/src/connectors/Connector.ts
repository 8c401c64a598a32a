/** A Connector: the account of an Identity on a platform (interface.md "Connector", decisions.md "Additions"). */
import { Schema } from "effect"
import { ShownUrl } from "../Text.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"
import { platformNames } from "./PlatformNames.ts"

/** Operations that the platform allows for the connected account. */
export const Capability = Schema.Literals(["post", "reply", "thread", "notifications", "dm"])
export type Capability = typeof Capability.Type

export const ConnectedVia = Schema.Literals(["app_password", "oauth"])
export type ConnectedVia = typeof ConnectedVia.Type

const ConnectorStatus = Schema.Literals(["connected", "paused", "stopped"]).annotate({
  description:
    "`paused`: inactive until PATCH sets `paused` to false. `stopped`: the platform rejects the credential, or the profile no longer states that the account is automated, as `last_error` explains; connect it again.",
})

/** The name of a platform in paths and rows. */
export const PlatformName = Schema.Literals(platformNames)
export type PlatformName = typeof PlatformName.Type

export const Connector = Schema.Struct({
  platform: PlatformName,
  status: ConnectorStatus,
  account: Schema.String.annotate({ description: "The account's name on the platform." }),
  account_id: Schema.String.annotate({ description: "The platform's permanent id of the account." }),
  service: ShownUrl.annotate({ description: "The server that hosts the account." }),
  connected_via: ConnectedVia,
  capabilities: Schema.Array(Capability).annotate({
    description: "Operations that the platform allows for the account.",
  }),
  disclosed: Schema.Boolean.annotate({
    description: "Whether the account's profile states that it is automated; checked daily.",
  }),
  paused: Schema.Boolean,
  polled_at: TimestampOrNull,
  last_error: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  updated_at: Timestamp,
}).annotate({ identifier: "Connector" })
export type Connector = typeof Connector.Type
