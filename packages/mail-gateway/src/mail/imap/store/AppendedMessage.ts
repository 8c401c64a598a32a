/**
 * Prepares a message that a client appends, or that the gateway generates, for its actor: parsed, with an unverified
 * origin, indexed, and stored in advance if it is large.
 */
import { carriedAtMost, storeAhead } from "@svc/cluster/mail/MessageContent"
import { orUnavailable, Writes } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { Content, ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Effect } from "effect"
import type { Zoned } from "../protocol/Dates.ts"
import type { Judging } from "../../judging/VerdictPool.ts"
import * as SlicedWork from "../../SlicedWork.ts"
import * as Bodies from "./Bodies.ts"

export const make = Effect.fnUntraced(function* (judging: Judging, host: string) {
  const writes = yield* Writes

  return Effect.fnUntraced(function* (address: string, raw: Buffer, given: Zoned | undefined) {
    const message_id = yield* makeUuidV7
    const received_at = given?.at ?? new Date(yield* Clock.currentTimeMillis)
    const { parsed, origin } = yield* Effect.mapError(
      judging.judge(raw, Bodies.reading(host)),
      () => new Unavailable({ detail: "The server is too busy.", retry_after_seconds: 5 }),
    )
    const { message_id: message_id_header, text, html, headers, search_text, structure, ...envelope } = parsed
    const content: Content = {
      raw: new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength),
      text,
      html,
      headers,
      search_text,
      ...(structure === undefined ? {} : { structure }),
    }
    const sha256 = yield* SlicedWork.sha256(raw)
    const large = raw.length > carriedAtMost
    if (large) {
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* orUnavailable(storeAhead(writes, message_id, content, now))
    }
    const mail: ReceivedMail = {
      ...envelope,
      message_id,
      message_id_header,
      envelope_from: "",
      recipient: address,
      tag: null,
      sha256: sha256,
      size: raw.length,
      received_at,
      ...(given === undefined || given.zone === 0 ? {} : { received_zone: given.zone }),
      origin: { ...origin, verdict: "unverified" },
      content: large ? null : content,
    }
    return mail
  })
})

export type AppendedMessage = Effect.Success<ReturnType<typeof make>>
