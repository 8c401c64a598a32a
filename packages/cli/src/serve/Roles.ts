/** What a process may do of the service. */
export const roles = ["api", "actors", "mail", "edge"] as const
export type Role = (typeof roles)[number]
