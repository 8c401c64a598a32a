/**
 * Mastodon as a platform, including servers with a compatible API (Pleroma, Akkoma, GoToSocial, snac). Servers are not
 * trusted: every response is validated and bounded.
 */
import { Effect } from "effect"
import type { MakePlatform, Platform } from "../Platform.ts"
import * as Authorization from "./Authorization.ts"
import * as Discovery from "./Discovery.ts"
import * as Notifications from "./Notifications.ts"
import * as Profile from "./Profile.ts"
import * as Statuses from "./Statuses.ts"
import * as Streaming from "./Streaming.ts"
import * as PostOptions from "./PostOptions.ts"

export const settings: ReadonlyArray<string> = []

export const make: MakePlatform = (parts) =>
  Effect.sync((): Platform => {
    const instances = Discovery.makeInstances()
    const statuses = Statuses.make(instances)
    const notifications = Notifications.make(statuses)
    return {
      name: "mastodon",
      title: "Mastodon",
      login: undefined,
      authorize: Authorization.authorize(parts, instances),
      finish: Authorization.finish(instances),
      revoke: Authorization.revoke,
      inspect: Profile.inspect(instances),
      validate: (post) => Effect.asVoid(PostOptions.parse(post)),
      post: statuses.post,
      sendDm: statuses.sendDm,
      posts: statuses.own,
      dms: statuses.dms,
      thread: statuses.thread,
      notifications: notifications.page,
      poll: notifications.poll,
      stream: Streaming.make(instances),
      disclose: Profile.disclose(parts.disclosure),
      undisclose: Profile.undisclose,
    }
  })
