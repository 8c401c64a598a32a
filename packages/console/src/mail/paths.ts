/** Where the pages of a Mailbox are, below `/console`. */
export const mailOf = (handle: string) => `/identities/${encodeURIComponent(handle)}/mail`
