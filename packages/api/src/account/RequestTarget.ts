/**
 * What a request names, found where its endpoint's policy says. It is read before the request is decoded: what decoding
 * will refuse names nothing here (`Unreadable`), so that the refusal is the decoder's.
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

/** A Handle in the path or the query: what is looked up together with the credential. */
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
  // As the library decodes it; a body of this API is decoded without services.
  const schema = Schema.Union(schemas) as unknown as Schema.Codec<unknown>
  const made = Schema.decodeUnknownOption(schema, { onExcessProperty: "error" })
  decoders.set(endpoint, made)
  return made
}

/** The body as the endpoint will decode it, none where it will refuse it. An empty one is null. */
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

/** A kind of resource: what its ids look like, and whose one is. */
interface Owned {
  readonly isId: (id: unknown) => id is string
  /** Null: the Org's own. Undefined: the Org has no such thing. */
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

  /** What is named otherwise than by a Handle in the path or the query. */
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
        // Who may act on certain Identities has them at hand, and no other is looked for on its behalf.
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
        // It takes a look-up of its own, which a request that will be refused is not worth.
        if (endpoint.payload.size > 0 && Option.isNone(yield* bodyOf(endpoint))) return unreadable
        const owner = yield* ownerOf(caller.org.id, id)
        return { _tag: "Resource", resource: names.resource, owner } satisfies Named
      }
    }
  })

  return { otherwise }
})
