/**
 * Queries a DNS server that validates by DNSSEC, and trusts the AD flag of its answers, so the path to the server must
 * be trusted, for example loopback. Uses UDP, and TCP for truncated answers.
 */
import { createSocket } from "node:dgram"
import { randomInt } from "node:crypto"
import { connect, isIPv6 } from "node:net"
import { Cache, Duration, Effect, Exit } from "effect"
import { Timing } from "../../../Timing.ts"
import { LookupFailed } from "../../Resolver.ts"
import * as Message from "./Message.ts"

export interface ServerAddress {
  readonly host: string
  readonly port: number
}

/** The records of a name. Absence is an answer too, and can also be secure. */
interface Found {
  readonly values: ReadonlyArray<Message.Value>
  readonly owner: string | undefined
  readonly isSecure: boolean
  readonly exists: boolean
}

const timedOut = new LookupFailed({ code: "ETIMEOUT" })
const failed = (error: Error) => new LookupFailed({ code: "code" in error ? String(error.code) : "EUNKNOWN" })

// `Effect.callback` runs its finalizer on an interruption only, so `acquireUseRelease` closes the sockets.
const byUdp = ({ host, port }: ServerAddress, id: number, question: Buffer, type: Message.Type) =>
  Effect.acquireUseRelease(
    Effect.sync(() => createSocket(isIPv6(host) ? "udp6" : "udp4")),
    (socket) =>
      Effect.callback<Message.Answer, LookupFailed>((resume) => {
        socket.on("error", (error) => resume(Effect.fail(failed(error))))
        socket.on("message", (message) => {
          const answer = Message.answer(message, type)
          if (answer?.id === id) resume(Effect.succeed(answer))
        })
        // A connected socket only receives datagrams from this server, and reports ICMP errors.
        socket.connect(port, host, () => socket.send(question))
      }),
    (socket) => Effect.sync(() => socket.close()),
  )

const byTcp = ({ host, port }: ServerAddress, id: number, question: Buffer, type: Message.Type) =>
  Effect.acquireUseRelease(
    Effect.sync(() => connect({ host, port })),
    (socket) =>
      Effect.callback<Message.Answer, LookupFailed>((resume) => {
        let received = Buffer.alloc(0)
        socket.on("error", (error) => resume(Effect.fail(failed(error))))
        socket.on("close", () => resume(Effect.fail(new LookupFailed({ code: "ECONNRESET" }))))
        socket.on("data", (chunk: Buffer) => {
          received = Buffer.concat([received, chunk])
          if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
          const answer = Message.answer(received.subarray(2, 2 + received.readUInt16BE(0)), type)
          resume(answer?.id === id ? Effect.succeed(answer) : Effect.fail(new LookupFailed({ code: "EBADRESP" })))
        })
        const length = Buffer.from([question.length >> 8, question.length & 0xff])
        socket.write(Buffer.concat([length, question]))
      }),
    (socket) => Effect.sync(() => socket.destroy()),
  )

export const make = Effect.fnUntraced(function* (server: ServerAddress) {
  const query = Effect.fnUntraced(function* (name: string, type: Message.Type) {
    const id = randomInt(0x10000)
    const question = Message.question(id, name, type)
    if (question === undefined) return yield* new LookupFailed({ code: "EBADNAME" })
    const inTime = Effect.timeoutOrElse({ duration: Timing.dnsMillis, orElse: () => Effect.fail(timedOut) })
    const udpAnswer = yield* byUdp(server, id, question, type).pipe(inTime, Effect.retry({ times: 1 }))
    const answer = udpAnswer.isTruncated ? yield* byTcp(server, id, question, type).pipe(inTime) : udpAnswer
    // Failed validation is also reported as a server failure.
    if (answer.code !== 0 && answer.code !== 3) return yield* new LookupFailed({ code: "ESERVFAIL" })
    const { values, owner, isSecure } = answer
    return { values, owner, isSecure, exists: answer.code === 0 } satisfies Found
  })
  const cache = yield* Cache.makeWith(
    (key: string) => {
      const [type] = key.split(" ", 1) as [Message.Type]
      return query(key.slice(type.length + 1), type)
    },
    {
      capacity: 10_000,
      // The server caches as well; this cache saves repeated queries of one attempt.
      timeToLive: (exit) => (Exit.isSuccess(exit) ? Duration.minutes(1) : Duration.zero),
    },
  )
  return (name: string, type: Message.Type): Effect.Effect<Found, LookupFailed> =>
    Cache.get(cache, `${type} ${name.replace(/\.$/, "").toLowerCase()}`)
})
