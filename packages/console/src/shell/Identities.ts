/** The account's Identities, as the navigation, the palette and the stop need them: one reading for all. */
import { call } from "../client/Client.ts"
import { client, keyOf, useCall } from "../client/Queries.ts"

export const identitiesInput = { query: { limit: 200 } } as const

/** Reads them before anything that shows them is drawn. */
export const knowIdentities = () =>
  client.prefetchQuery({
    queryKey: keyOf("GET /api/identities", identitiesInput),
    queryFn: ({ signal }) => call("GET /api/identities", identitiesInput, { signal }),
  })

export const useIdentities = () =>
  useCall("GET /api/identities", identitiesInput, {
    // The steps of a saga raise no Events: it is looked at while one is under way.
    every: (known) =>
      known?.identities.some(({ status }) => status === "provisioning" || status === "deleting") === true
        ? 1000
        : false,
  })
