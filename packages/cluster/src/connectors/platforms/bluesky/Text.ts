/** Text limits as Bluesky counts them, and the links, mentions and tags in a text. */
import { AppBskyRichtextFacet, RichText, UnicodeString } from "@atproto/api"
import { Effect } from "effect"
import { InputRefused, type PlatformFailure } from "../Failure.ts"
import type { Connection } from "./Connection.ts"

interface TextLimit {
  readonly graphemes: number
  readonly bytes: number
}

/** Limits of the lexicons `app.bsky.feed.post` and `chat.bsky.convo.defs#messageInput`. */
export const postLimit: TextLimit = { graphemes: 300, bytes: 3_000 }
export const messageLimit: TextLimit = { graphemes: 1_000, bytes: 10_000 }

/** Number of mentions in one text that are resolved. Further mentions stay plain text. */
const mentionsAtMost = 20

export const validate = (text: string, limit: TextLimit): Effect.Effect<void, InputRefused> => {
  const refuse = (message: string) => Effect.fail(new InputRefused({ message, path: "/text" }))
  // The byte limit is checked first, because counting graphemes of a long text is slow.
  if (Buffer.byteLength(text) > limit.bytes) {
    return refuse(`The text is longer than ${limit.graphemes} characters (${limit.bytes} bytes).`)
  }
  const { graphemeLength } = new UnicodeString(text)
  return graphemeLength > limit.graphemes
    ? refuse(`The text has ${graphemeLength} characters; Bluesky allows ${limit.graphemes}.`)
    : Effect.void
}

/** Returns the facets of a text: its links and tags, and mentions of accounts that exist. */
export const facets = Effect.fnUntraced(function* (
  { agent, call }: Connection,
  text: string,
): Effect.fn.Return<Array<AppBskyRichtextFacet.Main> | undefined, PlatformFailure> {
  const rich = new RichText({ text })
  rich.detectFacetsWithoutResolution()
  const found = rich.facets ?? []
  const mentioned = [...new Set(found.flatMap(handlesOf))].slice(0, mentionsAtMost)
  const dids = new Map(
    yield* Effect.forEach(
      mentioned,
      (handle) =>
        Effect.map(
          // An unknown handle stays plain text.
          Effect.catchTag(
            call(() => agent.com.atproto.identity.resolveHandle({ handle })),
            ["PlatformRefused", "PlatformUnreachable"],
            () => Effect.succeed(undefined),
          ),
          (answer) => [handle, answer?.data.did] as const,
        ),
      { concurrency: 4 },
    ),
  )
  const kept = found.flatMap((facet): Array<AppBskyRichtextFacet.Main> => {
    const [handle] = handlesOf(facet)
    if (handle === undefined) return [facet]
    const did = dids.get(handle)
    return did === undefined ? [] : [{ ...facet, features: [{ $type: "app.bsky.richtext.facet#mention", did }] }]
  })
  return kept.length === 0 ? undefined : kept
})

/** Returns the handles in a facet. The library puts a mention's handle in the `did` member until it is resolved. */
const handlesOf = ({ features }: AppBskyRichtextFacet.Main): ReadonlyArray<string> =>
  features.flatMap((feature) => (AppBskyRichtextFacet.isMention(feature) ? [feature.did] : []))
