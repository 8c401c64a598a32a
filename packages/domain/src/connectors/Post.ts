/** Posts and notifications, in the same shape for every platform. */
import { Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"

export const Post = Schema.Struct({
  /** The platform's identifier of the post, which is the same for every reader. */
  uri: Schema.String,
  /** Web page of the post. */
  url: Schema.NullOr(Schema.String),
  author_id: Schema.String,
  /** The author's name on the platform, without a leading `@`. */
  author: Schema.String,
  author_name: Schema.NullOr(Schema.String),
  text: Schema.String,
  /** The `uri` of the parent post. */
  reply_to: Schema.NullOr(Schema.String),
  created_at: Timestamp,
}).annotate({ identifier: "Post" })
export type Post = typeof Post.Type

export const notificationKinds = ["mention", "reply", "dm"] as const
export type Heard = (typeof notificationKinds)[number]

export const Notification = Schema.Struct({
  kind: Schema.Literals(notificationKinds),
  post: Post,
  at: Timestamp,
}).annotate({ identifier: "Notification" })
export type Notification = typeof Notification.Type

/** A page of a platform's list; `cursor` is the platform's own and is null on the last page. */
export interface Page<A> {
  readonly entries: ReadonlyArray<A>
  readonly cursor: string | null
}

/** A rule of an instance that its members accept. */
export const InstanceRule = Schema.Struct({
  id: Schema.String,
  text: Schema.String,
  hint: Schema.NullOr(Schema.String),
}).annotate({ identifier: "InstanceRule" })
export type InstanceRule = typeof InstanceRule.Type
