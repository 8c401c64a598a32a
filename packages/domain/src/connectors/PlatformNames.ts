/**
 * The list of platforms. Each name has a folder of the same name in `packages/cluster/src/connectors/platforms/`
 * (docs/connectors.md); the rest of the product only knows the name.
 */
export const platformNames = ["bluesky", "mastodon"] as const
