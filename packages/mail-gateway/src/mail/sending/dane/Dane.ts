/**
 * What DNS, authenticated by DNSSEC, says about the certificates of a domain's mail servers (DANE for SMTP, RFC 7672): a server
 * that has TLSA records gets mail over TLS with a certificate that they name, or none. It stands on a validating resolver; where
 * none is set there is no DANE.
 */
import { Context, Effect, Layer, Option } from "effect"
import { LookupFailed, type Records, type Resolver } from "../../Resolver.ts"
import type { Tlsa } from "./Message.ts"
import { isUsable } from "./Tlsa.ts"
import * as ValidatingResolver from "./ValidatingResolver.ts"

/** What a server owes. */
export interface Owed {
  /** The name by which it is asked for its certificate: the server's, behind aliases. */
  readonly name: string
  /** Without any the certificate may be any, but there must be one (RFC 7672 section 2.2). */
  readonly records: ReadonlyArray<Tlsa>
}

export interface DaneSettings {
  readonly resolver: ValidatingResolver.ServerAddress
  /** That of the servers: 25, but in tests. */
  readonly port: number
}

const isTlsa = (value: unknown): value is Tlsa => typeof value === "object" && value !== null && "usage" in value

const make = Effect.fnUntraced(function* ({ resolver, port }: DaneSettings) {
  const found = yield* ValidatingResolver.make(resolver)

  /** As node's resolver answers, so that what is secure and where mail goes are read from the same answers. */
  const lookup: Resolver["Service"]["lookup"] = (name, type) => {
    if (type !== "MX" && type !== "A" && type !== "AAAA") return Effect.fail(new LookupFailed({ code: "EBADQUERY" }))
    return Effect.flatMap(found(name, type), ({ values, exists }) =>
      values.length > 0
        ? // What a look-up answers depends on its type, as node's.
          Effect.succeed(values as unknown as Records)
        : Effect.fail(new LookupFailed({ code: exists ? "ENODATA" : "ENOTFOUND" })),
    )
  }

  const isSecure = (domain: string) =>
    found(domain, "MX").pipe(
      Effect.map((answer) => answer.isSecure),
      Effect.orElseSucceed(() => false),
    )

  /** Only where the addresses are secure: names outside DNSSEC are often on servers that do not know TLSA (section 2.1.3). */
  const owed = Effect.fnUntraced(function* (server: string) {
    const addresses = [yield* found(server, "A"), yield* found(server, "AAAA")]
    if (!addresses.every((one) => one.isSecure)) return undefined
    const owner = addresses.find((one) => one.owner !== undefined)?.owner ?? server
    for (const name of new Set([owner, server])) {
      const { values, isSecure } = yield* found(`_${port}._tcp.${name}`, "TLSA")
      if (isSecure && values.length > 0) {
        return { name, records: values.filter(isTlsa).filter(isUsable) } satisfies Owed
      }
    }
    return undefined
  })

  return Option.some({ lookup, isSecure, owed })
})

/** None where no validating resolver is set. */
export class Dane extends Context.Service<Dane, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/sending/dane/Dane",
) {
  static readonly layer = (settings: DaneSettings) => Layer.effect(Dane, make(settings))
  static readonly none = Layer.succeed(Dane, Option.none())
}
