/** What the parts of an edge know of it. */
export interface EdgeIdentity {
  readonly id: string
  /** Where other edges reach it (`host:port`); empty until it listens, where the settings do not say. */
  address: string
  /** It takes no more links: agents are to dial elsewhere. */
  isDraining: boolean
}
