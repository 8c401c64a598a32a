/**
 * Finds the resource that a request names, at the place that its endpoint's policy declares. The request is read before it
 * is decoded: values that decoding will reject are treated as absent (`Unreadable`), so that the decoder's error is
 * returned.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { Named } from "@svc/domain/account/PolicyEvaluation"
import type { EndpointPolicy, Resource } from "@svc/domain/account/Policy"
import { EventId } from "@svc/domain/events/Event"
import { canonical } from "@svc/domain/handles/Handle"
import { HandleParam } from "@svc/domain/handles/HandleParam"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Effect, Option, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"

export type Members = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A Handle in the path or the query, which is looked up together with the credential. */
export interface NamedHandle {
  readonly canonical: string
  readonly readable: boolean
}

const isHandle = Schema.is(HandleParam)

export const handleIn = ({ names }: EndpointPolicy, path: Members, query: Members): NamedHandle | undefined => {
  const text = names._tag === "Path" ? path[names.member] : names._tag === "Query" ? query[names.member] : undefined
  return typeof text === "string" ? { canonical: canonical(text), readable: isHandle(text) } : undefined
}

const nothing: Named = { _tag: "Nothing" }
const unreadable: Named = { _tag: "Unreadable" }

const decoders = new WeakMap<HttpApiEndpoint.Top, (input: unknown) => Option.Option<unknown>>()
const decoderOf = (endpoint: HttpApiEndpoint.Top) => {
  const present = decoders.get(endpoint)
  if (present !== undefined) return present
  const schemas = endpoint.payload.get("application/json")?.schemas ?? []
  // Decodes as the library does; bodies of this API need no services for decoding.
  const schema = Schema.Union(schemas) as unknown as Schema.Codec<unknown>
  const made = Schema.decodeUnknownOption(schema, { onExcessProperty: "error" })
  decoders.set(endpoint, made)
  return made
}

/** Returns the decoded body, or undefined if decoding fails. An empty body is null. */
export const bodyOf = (endpoint: HttpApiEndpoint.Top) =>
  Effect.map(
    Effect.catch(
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => request.text),
      () => Effect.succeed("unreadable"),
    ),
    (text) => {
      try {
        return decoderOf(endpoint)(text === "" ? null : JSON.parse(text))
      } catch {
        return Option.none()
      }
    },
  )

/** A kind of resource: the format of its ids, and the lookup of its owner. */
interface Owned {
  readonly isId: (id: unknown) => id is string
  /** Null if the Org itself owns it; undefined if the Org has no such resource. */
  readonly ownerOf: (org: string, id: string) => Effect.Effect<IdentityRef | null | undefined, Unavailable>
}

export const make = Effect.gen(function* () {
  const identities = yield* IdentityQueries
  const events = yield* EventQueries

  const resources: { readonly [R in Resource]: Owned } = {
    Event: {
      isId: Schema.is(EventId),
      ownerOf: Effect.fnUntraced(function* (org, id) {
        const event = yield* Effect.catchTag(events.read(org, id), "not_found", () => Effect.succeed(undefined))
        if (event === undefined) return undefined
        return event.handle === null ? null : yield* identities.find(org, canonical(event.handle))
      }),
    },
  }

  /** Resources that are not named by a Handle in the path or the query. */
  const otherwise = Effect.fnUntraced(function* (
    endpoint: HttpApiEndpoint.Top,
    { names }: EndpointPolicy,
    caller: CallerInfo,
    path: Members,
    query: Members,
  ) {
    switch (names._tag) {
      case "Nowhere":
        return nothing
      case "Path":
      case "Query":
        return names._tag === "Query" && query[names.member] === undefined ? nothing : unreadable
      case "Body": {
        const body = yield* bodyOf(endpoint)
        if (Option.isNone(body)) return unreadable
        const handle = names.handleOf(body.value)
        if (handle === undefined) return nothing
        const name = canonical(handle)
        // A caller with a fixed set of Identities already carries them; no other is looked up for it.
        const found =
          caller.identities === null
            ? yield* identities.find(caller.org.id, name)
            : caller.identities.find((one) => one.canonical === name)
        return { _tag: "Handle", canonical: name, readable: true, found } satisfies Named
      }
      case "Resource": {
        const { isId, ownerOf } = resources[names.resource]
        const id = path[names.member]
        if (!isId(id)) return unreadable
        // This needs a separate lookup, which is wasted on a request that will be rejected.
        if (endpoint.payload.size > 0 && Option.isNone(yield* bodyOf(endpoint))) return unreadable
        const owner = yield* ownerOf(caller.org.id, id)
        return { _tag: "Resource", resource: names.resource, owner } satisfies Named
      }
    }
  })

  return { otherwise }
})
