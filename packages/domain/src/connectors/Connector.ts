/** A Connector: the account of an Identity on a platform (interface.md "Connector", decisions.md "Additions"). */
import { Schema } from "effect"
import { ShownUrl } from "../Text.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"
import { PlatformName } from "./PlatformName.ts"

/** Operations that the platform allows for the connected account. */
export const Capability = Schema.Literals(["post", "reply", "thread", "notifications", "dm"])
export type Capability = typeof Capability.Type

export const ConnectedVia = Schema.Literals(["app_password", "oauth"])
export type ConnectedVia = typeof ConnectedVia.Type

export const ConnectorStatus = Schema.Literals(["connected", "paused", "stopped"]).annotate({
  description:
    "`paused`: it does nothing until PATCH with `paused` false. `stopped`: the platform refuses its credential, or the profile no longer says that the account is automated; `last_error` says which. Connect it again.",
})

export const Connector = Schema.Struct({
  platform: PlatformName,
  status: ConnectorStatus,
  account: Schema.String.annotate({ description: "The account as one mentions it there." }),
  account_id: Schema.String.annotate({ description: "The platform's lasting id of the account." }),
  service: ShownUrl.annotate({ description: "The server that carries the account." }),
  connected_via: ConnectedVia,
  capabilities: Schema.Array(Capability).annotate({
    description: "Operations that the platform allows for the account.",
  }),
  disclosed: Schema.Boolean.annotate({
    description: "Whether the account's profile says that it is automated; looked at every day.",
  }),
  paused: Schema.Boolean,
  polled_at: TimestampOrNull,
  last_error: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  updated_at: Timestamp,
}).annotate({ identifier: "Connector" })
export type Connector = typeof Connector.Type
