/**
 * DANE for SMTP (RFC 7672): what DNS, authenticated by DNSSEC, says about the certificates of a domain's mail servers.
 * A server with TLSA records gets mail only over TLS with a certificate that they match. Requires a validating
 * resolver; without one DANE is off.
 */
import { Context, Effect, Layer, Option } from "effect"
import { LookupFailed, type Records, type Resolver } from "../../Resolver.ts"
import type { Tlsa } from "./Message.ts"
import { isUsable } from "./Tlsa.ts"
import * as ValidatingResolver from "./ValidatingResolver.ts"

/** The TLS requirements of a server. */
export interface TlsRequirement {
  /** The TLS server name: the server's name after following aliases. */
  readonly name: string
  /** If empty, TLS is required with any certificate (RFC 7672 section 2.2). */
  readonly records: ReadonlyArray<Tlsa>
}

export interface DaneSettings {
  readonly resolver: ValidatingResolver.ServerAddress
  /** The port of the mail servers: 25, except in tests. */
  readonly port: number
}

const isTlsa = (value: unknown): value is Tlsa => typeof value === "object" && value !== null && "usage" in value

const make = Effect.fnUntraced(function* ({ resolver, port }: DaneSettings) {
  const query = yield* ValidatingResolver.make(resolver)

  /** Looks up like Node's resolver, so that security and routing are decided by the same answers. */
  const lookup: Resolver["Service"]["lookup"] = (name, type) => {
    if (type !== "MX" && type !== "A" && type !== "AAAA") return Effect.fail(new LookupFailed({ code: "EBADQUERY" }))
    return Effect.flatMap(query(name, type), ({ values, exists }) =>
      values.length > 0
        ? // The record type depends on the query type, as with Node's resolver.
          Effect.succeed(values as unknown as Records)
        : Effect.fail(new LookupFailed({ code: exists ? "ENODATA" : "ENOTFOUND" })),
    )
  }

  const isSecure = (domain: string) =>
    query(domain, "MX").pipe(
      Effect.map((answer) => answer.isSecure),
      Effect.orElseSucceed(() => false),
    )

  /**
   * TLSA is only queried for secure addresses: servers outside DNSSEC are often on name servers that do not support
   * TLSA (section 2.1.3).
   */
  const requirementOf = Effect.fnUntraced(function* (server: string) {
    const addresses = [yield* query(server, "A"), yield* query(server, "AAAA")]
    if (!addresses.every((one) => one.isSecure)) return undefined
    const owner = addresses.find((one) => one.owner !== undefined)?.owner ?? server
    for (const name of new Set([owner, server])) {
      const { values, isSecure } = yield* query(`_${port}._tcp.${name}`, "TLSA")
      if (isSecure && values.length > 0) {
        return { name, records: values.filter(isTlsa).filter(isUsable) } satisfies TlsRequirement
      }
    }
    return undefined
  })

  return Option.some({ lookup, isSecure, requirementOf })
})

/** Is `None` without a validating resolver. */
export class Dane extends Context.Service<Dane, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/sending/dane/Dane",
) {
  static readonly layer = (settings: DaneSettings) => Layer.effect(Dane, make(settings))
  static readonly none = Layer.succeed(Dane, Option.none())
}
