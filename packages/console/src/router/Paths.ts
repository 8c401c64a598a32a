/** Paths of pages about an Identity, below `/console`. */
export const identityPath = (handle: string) => `/identities/${encodeURIComponent(handle)}`
export const mailPath = (handle: string) => `${identityPath(handle)}/mail`
export const approvalsPath = (handle: string) => `${mailPath(handle)}/approvals`
