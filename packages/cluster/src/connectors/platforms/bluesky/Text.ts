/** Text as Bluesky counts it, and what in it is a link, a mention or a tag. */
import { AppBskyRichtextFacet, RichText, UnicodeString } from "@atproto/api"
import { Effect } from "effect"
import { InputRefused, type PlatformFailure } from "../Failure.ts"
import type { Connection } from "./Connection.ts"

export interface Room {
  readonly graphemes: number
  readonly bytes: number
}

/** `app.bsky.feed.post` and `chat.bsky.convo.defs#messageInput`. */
export const ofPosts: Room = { graphemes: 300, bytes: 3_000 }
export const ofMessages: Room = { graphemes: 1_000, bytes: 10_000 }

/** Mentions that are looked up of one text; what is mentioned beyond them stays text. */
const mentionsAtMost = 20

export const judge = (text: string, room: Room): Effect.Effect<void, InputRefused> => {
  const refuse = (message: string) => Effect.fail(new InputRefused({ message, path: "/text" }))
  // Bytes first: they bound what there is to count.
  if (Buffer.byteLength(text) > room.bytes) {
    return refuse(`The text is longer than ${room.graphemes} characters (${room.bytes} bytes).`)
  }
  const { graphemeLength } = new UnicodeString(text)
  return graphemeLength > room.graphemes
    ? refuse(`The text has ${graphemeLength} characters; Bluesky takes ${room.graphemes}.`)
    : Effect.void
}

/** Links and tags as they stand, mentions of accounts that there are. */
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
          // A handle that nobody has is only text.
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

/** Before they are looked up, the library has the handle of a mention in place of its DID. */
const handlesOf = ({ features }: AppBskyRichtextFacet.Main): ReadonlyArray<string> =>
  features.flatMap((feature) => (AppBskyRichtextFacet.isMention(feature) ? [feature.did] : []))
