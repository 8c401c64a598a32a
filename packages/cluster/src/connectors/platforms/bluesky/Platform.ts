/** Bluesky as a platform. The official libraries make the calls (`@atproto/api`, `@atproto/oauth-client-node`). */
import { Effect } from "effect"
import { ServiceKey } from "../../../sealing/ServiceKey.ts"
import type { MakePlatform, NewPost, Session } from "../Platform.ts"
import * as Connection from "./Connection.ts"
import * as Messages from "./Messages.ts"
import * as Network from "./Network.ts"
import * as Notifications from "./Notifications.ts"
import * as OAuth from "./OAuth.ts"
import * as Posts from "./Posts.ts"
import * as Profile from "./Profile.ts"
import * as AccountStatus from "./AccountStatus.ts"

export const settings: ReadonlyArray<string> = ["PLC_URL", "HANDLE_RESOLVER", "CHAT_DID", "SERVICE"]

export const make: MakePlatform = Effect.fnUntraced(function* (parts) {
  const network = Network.make(parts, yield* ServiceKey)
  const using = <A>(session: Session, use: Parameters<typeof Connection.using<A>>[2]) =>
    Connection.using(network, session, use)

  return {
    name: "bluesky",
    title: "Bluesky",

    login: (visit, login) => AccountStatus.login(network, visit, login),
    authorize: (visit, request) => OAuth.authorize(network, visit, request),
    finish: (visit, back) => AccountStatus.finish(network, visit, back),
    revoke: (session) => Connection.end(network, session),
    inspect: (session) => AccountStatus.inspect(network, session),

    validate: (post: NewPost) =>
      post.to === undefined ? Effect.asVoid(Posts.validate(post)) : Messages.validate(post),
    post: (session, post) => using(session, (connection) => Posts.create(connection, session.account.name, post)),
    sendDm: (session, post) => using(session, (connection) => Messages.send(connection, session.account.name, post)),

    posts: (session, page) => using(session, (connection) => Posts.own(connection, session.account.name, page)),
    dms: (session, page) => using(session, (connection) => Messages.list(connection, page)),
    thread: (session, uri) =>
      using(session, (connection) =>
        Messages.isMessage(uri)
          ? Messages.conversation(connection, session.account.name, uri)
          : Posts.thread(connection, uri),
      ),
    notifications: (session, page) => using(session, (connection) => Notifications.list(session, connection, page)),
    poll: (session, mark) => using(session, (connection) => Notifications.poll(session, connection, mark)),
    // The network only has a stream of all accounts (the relay's).
    stream: undefined,

    disclose: (session) => using(session, (connection) => Profile.disclose(connection, parts.disclosure)),
    undisclose: (session, changed) => using(session, (connection) => Profile.undisclose(connection, changed)),
  }
})
