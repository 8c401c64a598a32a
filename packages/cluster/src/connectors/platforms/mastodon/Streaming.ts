/**
 * The streaming API (`docs.joinmastodon.org/methods/streaming`): a WebSocket with the account's notifications, at the
 * address in the instance document. A message only requests a poll, so it is only read as far as needed to see whether it
 * may concern the account. The token is sent in a header (Mastodon, GoToSocial) or as a subprotocol (Pleroma, Akkoma), and
 * never in the address, where logs would contain it.
 */
import { BoundedMap } from "@svc/domain/BoundedMap"
import { Clock, Effect, Schema } from "effect"
import { type PlatformFailure, Unsupported } from "../Failure.ts"
import type { Session } from "../Platform.ts"
import { Timing } from "../../../Timing.ts"
import type { Listening } from "../../../net/GuardedSocket.ts"
import { current } from "./Credentials.ts"
import type { Instances } from "./Discovery.ts"

/** A longer message ends the stream. */
const messageBytes = 256 * 1024
/** A longer message is not parsed and requests a poll. */
const readAtMost = 64 * 1024

/** A valid subprotocol (RFC 6455 section 4.1). */
const asProtocol = /^[\w!#$%&'*+.^`|~-]{1,1024}$/

const readEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ event: Schema.String, payload: Schema.optionalKey(Schema.Unknown) })),
)
const readNotification = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ type: Schema.String })))

/** Returns whether a message may be about a new post for the account. */
export const mayBeForUs = (text: string): boolean => {
  if (text.length > readAtMost) return true
  const message = readEvent(text)
  if (message._tag === "None" || message.value.event !== "notification") return false
  const notification = readNotification(message.value.payload)
  return notification._tag === "None" || notification.value.type === "mention"
}

/** Number of remembered servers that announce a stream but have none. */
const absentAtMost = 500

export const make = (instances: Instances) => {
  const absent = new BoundedMap<string, number>(absentAtMost)

  return Effect.fnUntraced(function* (session: Session, notify: () => void): Effect.fn.Return<never, PlatformFailure> {
    const { service } = session.account
    const unsupported = new Unsupported({ message: `${service} has no stream.` })
    const now = yield* Clock.currentTimeMillis
    if ((absent.get(service) ?? 0) > now) return yield* unsupported
    const { streaming } = yield* instances.limits(session.http, service)
    const { token } = yield* current(session)
    if (streaming === undefined || !asProtocol.test(token)) return yield* unsupported
    const listen = (how: Pick<Listening, "headers" | "protocols">) =>
      session.http.listen(new URL("/api/v1/streaming?stream=user:notification", streaming), {
        ...how,
        atMost: messageBytes,
        opened: notify,
        message: (text) => {
          if (mayBeForUs(text)) notify()
        },
      })
    return yield* listen({ headers: { authorization: `Bearer ${token}` }, protocols: [] })
      .pipe(Effect.catchTag("Unsupported", () => listen({ headers: {}, protocols: [token] })))
      .pipe(
        Effect.tapError((failure) =>
          Effect.sync(() => {
            if (failure._tag !== "Unsupported") return
            absent.set(service, now + Timing.streamAbsentMillis)
          }),
        ),
      )
  })
}
