/** Posts and notifications, in the same shape for every platform. */
import { Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"

export const Post = Schema.Struct({
  /** The platform's own name of the post, the same wherever it is seen. */
  uri: Schema.String,
  /** Where people read it. */
  url: Schema.NullOr(Schema.String),
  author_id: Schema.String,
  /** As one mentions the author there, without a leading `@`. */
  author: Schema.String,
  author_name: Schema.NullOr(Schema.String),
  /** Plain text. */
  text: Schema.String,
  /** The uri of the post that it answers. */
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

/** A page as a platform gives it; `cursor` is the platform's own, and null at the end. */
export interface Page<A> {
  readonly entries: ReadonlyArray<A>
  readonly cursor: string | null
}

/** A rule of an instance, which who joins it accepts. */
export const InstanceRule = Schema.Struct({
  id: Schema.String,
  text: Schema.String,
  hint: Schema.NullOr(Schema.String),
}).annotate({ identifier: "InstanceRule" })
export type InstanceRule = typeof InstanceRule.Type
