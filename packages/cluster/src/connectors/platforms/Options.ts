/** Options that stand under a platform's name, judged by the platform's own schema of them. */
import { Effect, Schema } from "effect"
import type { PlatformName } from "@svc/domain/connectors/PlatformName"
import { InputRefused } from "./Failure.ts"

const segment = (key: PropertyKey) => String(key).slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")

/** Judges options; one that the schema does not know is refused as such, any other fault as a bad request. */
export const reader = <A>(platform: PlatformName, schema: Schema.Codec<A>, known: ReadonlyArray<string>) => {
  const decode = Schema.decodeUnknownEffect(schema, { onExcessProperty: "error" })
  return (options: Readonly<Record<string, unknown>>): Effect.Effect<A, InputRefused> => {
    const stranger = Object.keys(options).find((name) => !known.includes(name))
    if (stranger !== undefined) {
      return Effect.fail(
        new InputRefused({
          message: `${platform} knows no option "${stranger.slice(0, 100)}"; it knows ${known.join(", ")}.`,
          path: `/options/${platform}/${segment(stranger)}`,
          unknownOption: true,
        }),
      )
    }
    return Effect.mapError(decode(options), (error) => {
      // The values may be whole pictures, so no more than the place and the expectation is said.
      const at = /at \[(.*?)\]\s*$/s.exec(String(error.message).slice(-300))?.[1]
      const place = at === undefined ? "" : at.replaceAll('"]["', "/").replaceAll('"', "").replaceAll("][", "/")
      return new InputRefused({
        message: `The options of ${platform} are not valid${place === "" ? "" : ` at ${place}`}.`,
        path: `/options/${platform}${place === "" ? "" : `/${place}`}`,
      })
    })
  }
}
