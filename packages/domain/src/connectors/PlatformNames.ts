/**
 * The platforms that an Identity can be connected to: the one list. A name here has its folder of the same name in
 * `packages/cluster/src/connectors/platforms/` (docs/connectors.md), and is all that the rest of the product knows of it.
 */
export const platformNames = ["bluesky", "mastodon"] as const
