/** Checks what verifiers of identity tokens read: the OpenID configuration and the key set (OpenID Connect Discovery). */
import { Effect, Option, Schema } from "effect"
import { call } from "../client/Connection.ts"
import type { Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("service")
const name = "token verification"

const Configuration = Schema.Struct({ issuer: Schema.String, jwks_uri: Schema.String })
const KeySet = Schema.Struct({ keys: Schema.Array(Schema.Struct({ kid: Schema.String, alg: Schema.String })) })

const read = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, api: string, path: string) =>
  Effect.map(Effect.option(call(api, "GET", path)), Option.flatMap(Schema.decodeUnknownOption(schema)))

/** Reads the documents at `api`, which is the base address of the service unless the service is on this machine. */
export const finding = Effect.fnUntraced(function* (
  api: string,
  { baseUrl, environment }: Pick<Settings, "baseUrl" | "environment">,
) {
  const configuration = yield* read(Configuration, api, "/.well-known/openid-configuration")
  if (Option.isNone(configuration)) {
    return found(
      name,
      "fail",
      `${api}/.well-known/openid-configuration is unreadable`,
      "Let the proxy in front of the service pass /.well-known/.",
    )
  }
  const { issuer, jwks_uri } = configuration.value
  if (issuer !== baseUrl) {
    return found(name, "fail", `the issuer is ${issuer}, not ${baseUrl}`, "Set the same SVC_BASE_URL everywhere.")
  }
  const keys = yield* read(KeySet, api, new URL(jwks_uri).pathname)
  const algorithms = new Set(Option.match(keys, { onNone: () => [], onSome: (set) => set.keys.map(({ alg }) => alg) }))
  if (!algorithms.has("RS256") || !algorithms.has("ES256")) {
    return found(name, "fail", `${jwks_uri} has no key for RS256 and ES256`, "Run `svc issuer` on the server.")
  }
  return environment === "production" && !issuer.startsWith("https:")
    ? found(name, "warn", `${issuer} is not an https address`, "Clouds only accept an https issuer: set SVC_BASE_URL.")
    : found(name, "ok", `${issuer} publishes ${[...algorithms].join(", ")}`)
})
