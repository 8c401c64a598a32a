/** The identity of this edge, shared by its parts. */
export interface EdgeIdentity {
  readonly id: string
  /**
   * Address at which other edges reach this one (`host:port`). Empty until the edge listens, unless the settings define
   * it.
   */
  address: string
  /** The edge is draining and refuses new links. */
  isDraining: boolean
}
