/** The public documents of an Identity's keys: `/@ada/did.json` and `/@ada/jwks.json`. Both disappear with the Identity. */
import { Addresses, type AddressBook } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"
import { NotFound } from "@svc/domain/problems/Problem"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { didDocument, jwkSet } from "@svc/cluster/proof/DidDocument"
import { type PublishedKeys, SigningKeys } from "@svc/cluster/proof/SigningKeys"
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { limited } from "../limits/PublicLimit.ts"
import { render } from "../problems/Render.ts"
import { RequestContext, RequestId } from "../RequestContext.ts"

interface Document {
  readonly path: `/@:handle/${string}`
  readonly contentType: string
  readonly of: (book: AddressBook, published: PublishedKeys) => unknown
}

const documents: ReadonlyArray<Document> = [
  { path: "/@:handle/did.json", contentType: "application/did+json", of: didDocument },
  { path: "/@:handle/jwks.json", contentType: "application/jwk-set+json", of: (_, published) => jwkSet(published) },
]

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const keys = yield* SigningKeys
    const limits = yield* PublicLimits
    const book = yield* Addresses

    for (const { path, contentType, of } of documents) {
      yield* router.add(
        "GET",
        path,
        Effect.gen(function* () {
          yield* limited(limits, "profile")
          const published = yield* keys.published(canonical((yield* HttpRouter.RouteContext).params["handle"] ?? ""))
          if (published === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
          ;(yield* RequestContext).tagged = true
          return HttpServerResponse.text(JSON.stringify(of(book, published)), {
            contentType,
            headers: { "cache-control": "public, max-age=0, must-revalidate" },
          })
        }).pipe(
          Effect.catch((problem) => Effect.map(RequestId, (id) => render(book, id, problem))),
          Effect.map((response) => HttpServerResponse.setHeader(response, "access-control-allow-origin", "*")),
        ),
      )
    }
  }),
)
