/** Validates the options under a platform's name with the platform's schema. */
import { Effect, Schema } from "effect"
import type { PlatformName } from "@svc/domain/connectors/PlatformName"
import { InputRefused } from "./Failure.ts"

const segment = (key: PropertyKey) => String(key).slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")

/** Returns a decoder for options. An unknown option has its own problem; other errors are invalid requests. */
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
      // Values may be whole pictures, so the message contains only the path.
      const at = /at \[(.*?)\]\s*$/s.exec(String(error.message).slice(-300))?.[1]
      const place = at === undefined ? "" : at.replaceAll('"]["', "/").replaceAll('"', "").replaceAll("][", "/")
      return new InputRefused({
        message: `The options of ${platform} are not valid${place === "" ? "" : ` at ${place}`}.`,
        path: `/options/${platform}${place === "" ? "" : `/${place}`}`,
      })
    })
  }
}
