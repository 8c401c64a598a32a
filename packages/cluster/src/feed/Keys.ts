/** The keys of the feed that are no ids. */

/** Links and settings of the Tunnel of a name. */
export const tunnelKey = (canonical: string) => `tunnel/${canonical}`
