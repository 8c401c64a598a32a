/**
 * The names that have open connections here, and what holds of each now: a Tunnel's settings are those of the moment, not
 * of the moment at which a connection began. Who holds a connection open is told when they are others.
 */
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { Effect, Schedule } from "effect"
import { Timing } from "../Timing.ts"

interface Name {
  standing: Standing | undefined
  /** Counts the looks, so that a slow one does not overwrite what a later one found. */
  looks: number
  readonly changed: Set<() => void>
}

/** One connection of a name. Many are idle at a time: methods, where closures would cost each of them. */
export class OpenConnection {
  private readonly names: Map<string, Name>
  private readonly canonical: string
  private readonly name: Name
  private readonly changed: () => void

  constructor(names: Map<string, Name>, canonical: string, name: Name, changed: () => void) {
    this.names = names
    this.canonical = canonical
    this.name = name
    this.changed = changed
    name.changed.add(changed)
  }

  /** Undefined where there is no such Identity any more. */
  now(): Standing | undefined {
    return this.name.standing
  }

  close(): void {
    this.name.changed.delete(this.changed)
    if (this.name.changed.size === 0 && this.names.get(this.canonical) === this.name) this.names.delete(this.canonical)
  }
}

export const make = <E>(look: (canonical: string) => Effect.Effect<Standing | undefined, E>) => {
  const names = new Map<string, Name>()

  return {
    /** `changed` is called when something else holds than before. */
    open: (canonical: string, standing: Standing, changed: () => void): OpenConnection => {
      const name = names.get(canonical) ?? { standing, looks: 0, changed: new Set() }
      names.set(canonical, name)
      return new OpenConnection(names, canonical, name, changed)
    },

    /** Looks again what holds of a name, and tells its connections. */
    refresh: (canonical: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        const name = names.get(canonical)
        if (name === undefined) return Effect.void
        const mine = ++name.looks
        return look(canonical).pipe(
          Effect.retry({
            while: () => mine === name.looks && name.changed.size > 0,
            schedule: Schedule.spaced(Timing.standingAgain),
          }),
          Effect.map((standing) => {
            if (mine !== name.looks || standing === name.standing) return
            name.standing = standing
            for (const changed of name.changed) changed()
          }),
          Effect.ignore,
        )
      }),

    names: (): ReadonlyArray<string> => [...names.keys()],
  }
}

export type OpenConnections = ReturnType<typeof make>
