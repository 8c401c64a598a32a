/**
 * Notifications of changed resources in a stream of Events, for clients that show resources, such as the console:
 *
 *     event: changed
 *     data: {"changes":[{"resource":"messages","handle":"ada"}]}
 *
 * `resource` is the name of a group of endpoints, and `handle` is null for resources of the Org. A notification has no content,
 * so the client reads what it shows again; `"changes":null` says that notifications may have been missed. A client
 * receives only kinds that its scopes allow it to read. `event: beat` once a second shows that the connection works.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { About } from "@svc/domain/account/EndpointScope"
import { allows, type Capability } from "@svc/domain/account/Scope"
import { Api } from "@svc/domain/Api"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Timing } from "@svc/cluster/Timing"
import { Context, Effect, Stream } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"

/** Kinds of resources that change without a call of their group. */
const others: Readonly<Record<string, Capability>> = { deliveries: "webhook" }

/** The capability whose `read` scope a kind of resource needs. */
const capabilityOf = new Map<string, Capability>([
  ...Object.entries(others),
  ...Object.entries(Api.groups).flatMap(([group, { endpoints }]) => {
    const [first] = Object.values<HttpApiEndpoint.Top>(endpoints)
    const about = first && Context.getOrUndefined(first.annotations, About)
    return about === undefined ? [] : [[group, about] as const]
  }),
])

export const make = Effect.map(ChangeFeed, (feed) => {
  const encoder = new TextEncoder()
  const beat = encoder.encode("event: beat\ndata: {}\n\n")

  return {
    /** Opens the notifications of the caller's Org. */
    open: ({ org, scopes }: Pick<CallerInfo, "org" | "scopes">) =>
      Effect.map(feed.resources(org.id), (changed) => {
        const isReadable = ({ resource }: { readonly resource: string }) => {
          const capability = capabilityOf.get(resource)
          return capability !== undefined && allows(scopes, `${capability}:read`)
        }
        const changes = Stream.concat(Stream.succeed(changed.recent), Stream.fromEffectRepeat(changed.await)).pipe(
          Stream.map((found) => ({ changes: found?.filter(isReadable) ?? null })),
          Stream.filter(({ changes }) => changes === null || changes.length > 0),
          Stream.map((notification) => encoder.encode(`event: changed\ndata: ${JSON.stringify(notification)}\n\n`)),
        )
        const beats = Stream.fromEffectRepeat(Effect.as(Effect.sleep(Timing.streamBeat), beat))
        return Stream.merge(changes, beats)
      }),
  }
})
