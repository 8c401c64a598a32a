/** The account's Identities, as the navigation, the palette and the stop need them: one reading for all. */
import { useCall } from "../client/Queries.ts"

export const identitiesInput = { query: { limit: 200 } } as const

export const useIdentities = () =>
  useCall("GET /api/identities", identitiesInput, {
    // The steps of a saga raise no Events: it is looked at while one is under way.
    every: (known) =>
      known?.identities.some(({ status }) => status === "provisioning" || status === "deleting") === true
        ? 1000
        : false,
  })
