/**
 * Operations of Connectors: accounts on other platforms through which an Identity posts, reads and sends direct
 * messages.
 */
import { Effect, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { callers, Confidential, onIdentity, onIdentityExcept, Tagged } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { Cursor, Limit } from "../Paging.ts"
import { conditional } from "../Precondition.ts"
import {
  AdminRequired,
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
  InvalidCursor,
  InvalidRequest,
  NotFound,
  PreconditionFailed,
  Unavailable,
} from "../problems/Problem.ts"
import { Line, ShownUrl, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"
import { Connector, PlatformName } from "./Connector.ts"
import { InstanceRule, Notification, Post } from "./Post.ts"
import { About } from "../account/EndpointScope.ts"

const params = { handle: HandleParam }
const one = { ...params, platform: PlatformName.annotate({ description: "The platform." }) }

export const ConnectorList = Schema.Struct({
  connectors: Schema.Array(Connector),
  paused: Schema.Boolean.annotate({ description: "Whether all Connectors of the Identity are paused." }),
}).annotate({ identifier: "ConnectorList" })

const Pausing = Schema.Struct({ paused: Schema.Boolean }).annotate({ identifier: "ConnectorPause" })
type Pausing = typeof Pausing.Type
const pausing = [Pausing, Pausing.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))] as const
const unpausing = onIdentityExcept<Pausing>(
  "A person paused the Connectors, so an Identity Key can pause but not resume them. Ask the account holder.",
  { paused: (paused) => !paused },
)

const ApplyDisclosure = Schema.Boolean.annotate({
  description:
    "If true, the service adds to the account's profile that it is automated (the platform's flag and a line of text), and removes it with the Connector.",
  default: false,
}).pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))

const Account = Line(500).annotate({
  description: "The account's name on the platform: `ada.bsky.social`, `ada@example.social`, or the instance's host.",
})

const AuthorizationStart = Schema.Struct({
  authorization_url: ShownUrl.annotate({ description: "Page on which the account holder approves the authorization." }),
  state: Schema.String.annotate({ description: "State of this authorization, which the browser returns." }),
  expires_at: Timestamp,
  instance_rules: Schema.Array(InstanceRule),
}).annotate({ identifier: "ConnectorAuthorization" })

const PostList = Schema.Struct({ posts: Schema.Array(Post), cursor: Schema.NullOr(Schema.String) }).annotate({
  identifier: "PostList",
})
const NotificationList = Schema.Struct({
  notifications: Schema.Array(Notification),
  cursor: Schema.NullOr(Schema.String),
}).annotate({ identifier: "NotificationList" })

const PlatformUri = Text.check(Schema.isMinLength(1), Schema.isMaxLength(2048))
const PostText = Text.check(Schema.isMaxLength(100_000)).annotate({
  description: "Plain text within the platform's length limit.",
})

const Options = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown)).annotate({
  description:
    "Options by platform: `bluesky` takes `langs`, `labels`, `images`; `mastodon` takes `visibility`, `spoiler_text`, `sensitive`, `language`, `media`; up to 4 `images` or `media` have `content_base64`, `content_type`, `alt`.",
})

const NewPost = Schema.Struct({
  text: PostText,
  reply_to: Schema.optionalKey(
    Schema.NullOr(PlatformUri).annotate({ description: "The `uri` of the post to reply to." }),
  ),
  options: Schema.optionalKey(Options),
}).annotate({ identifier: "NewPost" })

const NewDirectMessage = Schema.Struct({
  to: Line(500).annotate({ description: "The recipient's name on the platform." }),
  ...NewPost.fields,
}).annotate({ identifier: "NewDirectMessage" })

const platformErrors = [
  NotFound,
  ConnectorCapabilityUnsupported,
  ConnectorCredentialRefused,
  ConnectorPlatformError,
  ConnectorPlatformRateLimited,
  InvalidRequest,
  IdentityNotReady,
  Unavailable,
] as const
const callErrors = [...platformErrors, ConnectorNotConnected, ConnectorPaused, ConnectorStopped] as const

const page = {
  limit: Limit,
  cursor: Schema.optionalKey(Cursor.annotate({ description: "`cursor` of the previous page, unchanged." })),
}

export class ConnectorApi extends HttpApiGroup.make("connectors")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/connectors", {
      params,
      success: ConnectorList,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List the Connectors of an Identity")
      .annotate(Tagged, true)
      .annotate(Tool, {
        name: "svc_connector_list",
        effect: "read",
        columns: ["platform", "status", "account", "service", "capabilities", "paused"],
      }),
    HttpApiEndpoint.patch("pauseAll", "/api/identities/:handle/connectors", {
      params,
      headers: conditional,
      payload: [...pausing],
      success: ConnectorList,
      error: [NotFound, AdminRequired, PreconditionFailed, Unavailable],
    })
      .pipe(unpausing)
      .annotate(OpenApi.Summary, "Pause or resume all Connectors of an Identity"),
    HttpApiEndpoint.get("read", "/api/identities/:handle/connectors/:platform", {
      params: one,
      success: Connector,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read a Connector")
      .annotate(Tagged, true),
    HttpApiEndpoint.patch("pause", "/api/identities/:handle/connectors/:platform", {
      params: one,
      headers: conditional,
      payload: [...pausing],
      success: Connector,
      error: [NotFound, AdminRequired, ConnectorPaused, PreconditionFailed, Unavailable],
    })
      .pipe(unpausing)
      .annotate(OpenApi.Summary, "Pause or resume a Connector"),
    HttpApiEndpoint.put("connect", "/api/identities/:handle/connectors/:platform", {
      params: one,
      headers: conditional,
      payload: Schema.Struct({
        account: Account,
        app_password: Text.check(Schema.isMinLength(1), Schema.isMaxLength(500)),
        apply_disclosure: ApplyDisclosure,
      }),
      success: Connector,
      error: [...platformErrors, PreconditionFailed],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Connect an account with an app password"),
    HttpApiEndpoint.delete("disconnect", "/api/identities/:handle/connectors/:platform", {
      params: one,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Remove a Connector and revoke its credential at the platform"),
    HttpApiEndpoint.post("authorize", "/api/identities/:handle/connectors/:platform/authorize", {
      params: one,
      payload: Schema.Struct({ account: Schema.optionalKey(Account) }),
      success: AuthorizationStart,
      error: platformErrors,
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Begin to connect an account by OAuth"),
    HttpApiEndpoint.post("callback", "/api/connectors/callback", {
      payload: Schema.Struct({
        callback: Text.check(Schema.isMinLength(1), Schema.isMaxLength(8192)).annotate({
          description: "The address to which the platform redirected the browser, or its query.",
        }),
        apply_disclosure: ApplyDisclosure,
      }),
      success: Connector,
      error: [...platformErrors, ConnectorStateInvalid],
    })
      .pipe(callers("any"))
      .annotate(OpenApi.Summary, "Complete an authorization"),
    HttpApiEndpoint.get("posts", "/api/identities/:handle/connectors/:platform/posts", {
      params: one,
      query: page,
      success: PostList,
      error: [...callErrors, InvalidCursor],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the account's posts, newest first")
      .annotate(Tool, {
        name: "svc_connector_posts",
        effect: "read",
        external: true,
        columns: ["created_at", "author", "text", "url"],
      }),
    HttpApiEndpoint.post("post", "/api/identities/:handle/connectors/:platform/posts", {
      params: one,
      payload: NewPost,
      success: Post,
      error: [...callErrors, ConnectorOptionUnknown],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Post through a Connector, or reply to a post")
      .annotate(Tool, {
        name: "svc_connector_post",
        effect: "write",
        external: true,
        advice: "Public immediately.",
      }),
    HttpApiEndpoint.get("dms", "/api/identities/:handle/connectors/:platform/dms", {
      params: one,
      query: page,
      success: PostList,
      error: [...callErrors, InvalidCursor],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read direct messages, newest first")
      .annotate(Confidential, true),
    HttpApiEndpoint.post("dm", "/api/identities/:handle/connectors/:platform/dms", {
      params: one,
      payload: NewDirectMessage,
      success: Post,
      error: [...callErrors, ConnectorOptionUnknown],
    })
      .pipe(onIdentity("any"))
      .annotate(Confidential, true)
      .annotate(OpenApi.Summary, "Send a direct message")
      .annotate(Tool, {
        name: "svc_connector_dm",
        effect: "write",
        external: true,
      }),
    HttpApiEndpoint.get("thread", "/api/identities/:handle/connectors/:platform/thread", {
      params: one,
      query: { uri: PlatformUri.annotate({ description: "The `uri` of a post." }) },
      success: PostList,
      error: callErrors,
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the conversation around a post")
      .annotate(Tool, {
        name: "svc_connector_thread",
        effect: "read",
        external: true,
        untrusted: ["posts"],
        columns: ["created_at", "author", "text", "uri"],
      }),
    HttpApiEndpoint.get("notifications", "/api/identities/:handle/connectors/:platform/notifications", {
      params: one,
      query: page,
      success: NotificationList,
      error: [...callErrors, InvalidCursor],
    })
      .pipe(onIdentity("any"))
      .annotate(Confidential, true)
      .annotate(OpenApi.Summary, "Read mentions, replies and direct messages, newest first")
      .annotate(Tool, {
        name: "svc_connector_notifications",
        effect: "read",
        external: true,
        untrusted: ["notifications"],
        columns: ["at", "kind", "post.author", "post.text", "post.uri"],
      }),
  )
  .annotateEndpoints(About, "connector")
  .annotate(OpenApi.Description, "Accounts on other platforms.") {}
