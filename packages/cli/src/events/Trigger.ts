/**
 * `svc trigger`: causes a real Event, so that a receiver can be tried. Nothing is simulated: `email.received` sends a message from the
 * Identity to itself. The command removes what it added: the own address as Allowed Recipient.
 */
import { Effect, Option, Schedule, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { call, connect, type Connection, explained, handleOf, Misused, understood } from "../client/Connection.ts"
import { apiFlag, handleFlag } from "../client/Flags.ts"
import { withProgress } from "../client/Progress.ts"
import { formatFlags, respond } from "../client/Format.ts"

const decodeIdentity = Schema.decodeUnknownEffect(Schema.Struct({ handle: Schema.String, email: Schema.String }))
const decodeRecipients = Schema.decodeUnknownEffect(
  Schema.Struct({ allowed_recipients: Schema.Array(Schema.Struct({ address: Schema.String })) }),
)
const decodeMessages = Schema.decodeUnknownEffect(
  Schema.Struct({ messages: Schema.Array(Schema.Struct({ id: Schema.String, direction: Schema.String })) }),
)

/** How long a message to oneself may take. */
const patience = "60 seconds"

/** Sends a message from the Identity to itself, and waits until it has arrived. */
const mail = Effect.fnUntraced(function* ({ api, key }: Connection, handle: string) {
  const path = `/api/identities/${encodeURIComponent(handle)}`
  const { email } = yield* understood(api, decodeIdentity(yield* call(api, "GET", path, { key })))
  const address = encodeURIComponent(email)
  const found = yield* call(api, "GET", `${path}/allowed-recipients?address=${address}`, { key })
  const { allowed_recipients } = yield* understood(api, decodeRecipients(found))
  const isAllowed = allowed_recipients.some((one) => one.address.toLowerCase() === email.toLowerCase())
  const subject = `Test of email.received ${crypto.randomUUID().slice(0, 8)}`
  const arrived = Effect.gen(function* () {
    const query = encodeURIComponent(`subject:"${subject}"`)
    const body = yield* call(api, "GET", `${path}/messages?direction=inbound&query=${query}`, { key })
    return (yield* understood(api, decodeMessages(body))).messages[0]?.id
  })
  const sendAndWait = Effect.gen(function* () {
    yield* call(api, "POST", `${path}/messages/send`, {
      key,
      body: {
        to: [email],
        subject,
        text: "svc trigger email.received sent this message to test a receiver of Events.",
      },
    })
    const id = yield* Effect.repeat(arrived, {
      schedule: Schedule.spaced("500 millis"),
      until: (message) => message !== undefined,
    }).pipe(Effect.timeoutOption(patience))
    return Option.getOrUndefined(id)
  })
  if (!isAllowed) yield* call(api, "POST", `${path}/allowed-recipients`, { key, body: { address: email } })
  const id = yield* isAllowed
    ? sendAndWait
    : Effect.ensuring(sendAndWait, Effect.ignore(call(api, "DELETE", `${path}/allowed-recipients/${address}`, { key })))
  if (id === undefined) {
    return yield* new Misused({
      message: `The message was accepted and has not arrived within a minute. \`svc email list ${handle}\` shows its delivery.`,
    })
  }
  return id
})

const triggers = { "email.sent": mail, "email.received": mail } as const

export const command = Command.make(
  "trigger",
  {
    event: Argument.Literals("event", Object.keys(triggers) as ReadonlyArray<keyof typeof triggers>).pipe(
      Argument.withDescription(`The Event type: ${Object.keys(triggers).join(", ")}.`),
    ),
    handle: handleFlag,
    api: apiFlag,
    ...formatFlags,
  },
  Effect.fnUntraced(function* (flags) {
    const connection = yield* connect(flags.api)
    const handle = yield* handleOf(connection, flags.handle)
    const id = yield* withProgress("Waiting for the message", triggers[flags.event](connection, handle))
    const events = Object.keys(triggers)
    yield* respond(
      flags,
      { handle, message_id: id, events },
      () => `The message ${id} arrived: ${events.join(" and ")} were raised.`,
    )
  }, explained),
).pipe(Command.withDescription("Cause a real Event, to try a receiver of Events."))
