/** The list of Identities, shared by the navigation, the palette and the stop button. */
import { call } from "../client/Client.ts"
import { client, keyOf, useCall } from "../client/Queries.ts"

export const identitiesInput = { query: { limit: 200 } } as const

/** Starts loading the list before the first render. */
export const knowIdentities = () =>
  client.prefetchQuery({
    queryKey: keyOf("GET /api/identities", identitiesInput),
    queryFn: ({ signal }) => call("GET /api/identities", identitiesInput, { signal }),
  })

export const useIdentities = () =>
  useCall("GET /api/identities", identitiesInput, {
    // Set-up steps raise no Events, so they are polled.
    every: (known) =>
      known?.identities.some(({ status }) => status === "provisioning" || status === "deleting") === true
        ? 1000
        : false,
  })
