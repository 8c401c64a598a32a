/** Where the messages of an Identity are, and those that wait for a person, below `/console`. */
export const mailOf = (handle: string) => `/identities/${encodeURIComponent(handle)}/mail`
export const approvalsOf = (handle: string) => `${mailOf(handle)}/approvals`
