/**
 * Messages of the Connector actor. Its entity id is the canonical Handle, a slash and the platform's name. The actor is
 * the only writer of a platform's credential. Calls to the platform run concurrently with other messages, so that a
 * slow platform delays neither a pause nor a removal.
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import {
  ConnectorCapabilityUnsupported,
  ConnectorCredentialRefused,
  ConnectorNotConnected,
  ConnectorOptionUnknown,
  ConnectorPaused,
  ConnectorPlatformError,
  ConnectorPlatformRateLimited,
  ConnectorStateInvalid,
  ConnectorStopped,
  IdentityNotReady,
  InvalidRequest,
  NotFound,
} from "../problems/Problem.ts"
import { InstanceRule, notificationKinds, Post } from "./Post.ts"

/** Problems that a call to a platform can have. */
const ofPlatform = [
  InvalidRequest,
  NotFound,
  IdentityNotReady,
  ConnectorCapabilityUnsupported,
  ConnectorCredentialRefused,
  ConnectorPlatformError,
  ConnectorPlatformRateLimited,
] as const
const ofConnector = [...ofPlatform, ConnectorNotConnected, ConnectorPaused, ConnectorStopped] as const

/** Connects by an app password and replaces an existing connection. */
const Login = Rpc.make("Login", {
  payload: {
    ...tenant,
    account: Schema.String,
    password: Schema.String,
    apply_disclosure: Schema.Boolean,
  },
  error: failures(...ofPlatform),
})

const StartedAuthorization = Schema.Struct({
  authorization_url: Schema.String,
  state: Schema.String,
  expires_at: Schema.Date,
  instance_rules: Schema.Array(InstanceRule),
})

const Authorize = Rpc.make("Authorize", {
  payload: { ...tenant, account: Schema.optionalKey(Schema.String) },
  success: StartedAuthorization,
  error: failures(...ofPlatform),
})

/** Completes an authorization; `query` is the query string of the redirect. */
const Finish = Rpc.make("Finish", {
  payload: { ...tenant, state: Schema.String, query: Schema.String, apply_disclosure: Schema.Boolean },
  error: failures(...ofPlatform, ConnectorStateInvalid),
})

/** Pauses or resumes. `everyone` means that all Connectors of the Identity are paused. */
const Pause = Rpc.make("Pause", {
  payload: { ...tenant, paused: Schema.Boolean, everyone: Schema.Boolean },
  error: failures(NotFound, ConnectorPaused),
})

/**
 * Removes the connection and revokes its credential. Replies when the platform has revoked it, or after a short wait.
 */
const Disconnect = Rpc.make("Disconnect", { payload: { ...tenant }, error: failures(NotFound) })

/** Disconnects during a deletion; deletes all data and returns whether the platform has revoked every credential. */
const Leave = Rpc.make("Leave", {
  payload: { ...tenant },
  success: Schema.Struct({ revoked: Schema.Boolean }),
  error: failures(),
})

const Publish = Rpc.make("Publish", {
  payload: {
    ...tenant,
    command_id: Uuid,
    text: Schema.String,
    reply_to: Schema.NullOr(Schema.String),
    /** The recipient of a direct message; null for a post. */
    to: Schema.NullOr(Schema.String),
    options: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown)),
  },
  success: Post,
  error: failures(...ofConnector, ConnectorOptionUnknown),
})

const pageWanted = { ...tenant, limit: Schema.Int, cursor: Schema.NullOr(Schema.String) }
const pageOf = <Entry extends Schema.Top>(entry: Entry) =>
  Schema.Struct({ entries: Schema.Array(entry), cursor: Schema.NullOr(Schema.String) })

const ReadPosts = Rpc.make("ReadPosts", {
  payload: { ...pageWanted, of: Schema.Literals(["posts", "dms"]) },
  success: pageOf(Post),
  error: failures(...ofConnector),
})

const ReadThread = Rpc.make("ReadThread", {
  payload: { ...tenant, uri: Schema.String },
  success: pageOf(Post),
  error: failures(...ofConnector),
})

const ReadNotifications = Rpc.make("ReadNotifications", {
  payload: pageWanted,
  success: pageOf(Schema.Struct({ kind: Schema.Literals(notificationKinds), post: Post, at: Schema.Date })),
  error: failures(...ofConnector),
})

/** Runs due work: polls, profile checks and revocations. */
const Work = Rpc.make("Work", { error: failures() }).annotate(ClusterSchema.InterruptOnTermination, true)

export const ConnectorActor = Entity.fromRpcGroup(
  "Connector",
  RpcGroup.make(Login, Authorize, Finish, Pause, Disconnect, Leave, Publish)
    // A write to a platform is recorded even if its caller disconnects.
    .annotateRpcs(ClusterSchema.Uninterruptible, "server")
    .add(ReadPosts, ReadThread, ReadNotifications, Work),
)

export const entityId = (canonical: string, platform: string): string => `${canonical}/${platform}`
