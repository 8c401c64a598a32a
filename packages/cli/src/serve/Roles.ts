/** The roles of a process. */
export const roles = ["api", "actors", "mail", "edge"] as const
export type Role = (typeof roles)[number]
