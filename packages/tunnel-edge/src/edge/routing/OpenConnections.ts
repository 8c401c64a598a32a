/**
 * The names with open connections and the current settings of each. Changed settings apply to open connections too, so
 * each connection subscribes to changes.
 */
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { Effect, Schedule } from "effect"
import { Timing } from "../Timing.ts"

interface Name {
  standing: Standing | undefined
  /** Counts lookups, so that a slow lookup does not overwrite a later result. */
  looks: number
  readonly changed: Set<() => void>
}

/** One open connection of a name. A class, because closures would cost memory for each of many idle connections. */
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

  /** Returns the current settings, or undefined if the Identity no longer exists. */
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
    /** Adds a connection; `changed` is called when the settings change. */
    open: (canonical: string, standing: Standing, changed: () => void): OpenConnection => {
      const name = names.get(canonical) ?? { standing, looks: 0, changed: new Set() }
      names.set(canonical, name)
      return new OpenConnection(names, canonical, name, changed)
    },

    /** Looks up the settings of a name and notifies its connections if they changed. */
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
