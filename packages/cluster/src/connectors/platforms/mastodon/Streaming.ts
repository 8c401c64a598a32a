/**
 * The streaming API (`docs.joinmastodon.org/methods/streaming`): a WebSocket of the account's notifications, at the server
 * that the instance names for it. What comes only asks for a poll, so it is read no further than whether it may be for us.
 * The token goes in the header, as Mastodon and GoToSocial take it, else as subprotocol, as Pleroma and Akkoma do; both
 * take it in the address too, where logs would show it.
 */
import { Clock, Effect, Schema } from "effect"
import { type PlatformFailure, Unsupported } from "../Failure.ts"
import type { Session } from "../Platform.ts"
import { Timing } from "../../../Timing.ts"
import type { Listening } from "../../../net/GuardedSocket.ts"
import { current } from "./Credentials.ts"
import type { Instances } from "./Discovery.ts"

/** A longer one ends the stream. */
const messageBytes = 256 * 1024
/** What is longer is not looked into: it may be for us. */
const readAtMost = 64 * 1024

/** What a subprotocol may be (RFC 6455 section 4.1). */
const asProtocol = /^[\w!#$%&'*+.^`|~-]{1,1024}$/

const readEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ event: Schema.String, payload: Schema.optionalKey(Schema.Unknown) })),
)
const readNotification = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ type: Schema.String })))

/** Returns whether the message announces a notification of the account. */
export const mayBeForUs = (text: string): boolean => {
  if (text.length > readAtMost) return true
  const message = readEvent(text)
  if (message._tag === "None" || message.value.event !== "notification") return false
  const notification = readNotification(message.value.payload)
  return notification._tag === "None" || notification.value.type === "mention"
}

/** Servers that have no stream, in spite of what they say, and until when they are believed; the oldest goes. */
const absentAtMost = 500

export const make = (instances: Instances) => {
  const absent = new Map<string, number>()

  return Effect.fnUntraced(function* (session: Session, heard: () => void): Effect.fn.Return<never, PlatformFailure> {
    const { service } = session.account
    const none = new Unsupported({ message: `${service} has no stream.` })
    const now = yield* Clock.currentTimeMillis
    if ((absent.get(service) ?? 0) > now) return yield* none
    const { streaming } = yield* instances.limits(session.http, service)
    const { token } = yield* current(session)
    if (streaming === undefined || !asProtocol.test(token)) return yield* none
    const listen = (how: Pick<Listening, "headers" | "protocols">) =>
      session.http.listen(new URL("/api/v1/streaming?stream=user:notification", streaming), {
        ...how,
        atMost: messageBytes,
        opened: heard,
        message: (text) => {
          if (mayBeForUs(text)) heard()
        },
      })
    return yield* listen({ headers: { authorization: `Bearer ${token}` }, protocols: [] })
      .pipe(Effect.catchTag("Unsupported", () => listen({ headers: {}, protocols: [token] })))
      .pipe(
        Effect.tapError((failure) =>
          Effect.sync(() => {
            if (failure._tag !== "Unsupported") return
            absent.delete(service)
            if (absent.size >= absentAtMost) absent.delete(absent.keys().next().value!)
            absent.set(service, now + Timing.streamAbsentMillis)
          }),
        ),
      )
  })
}
