/** What the callers saw, and what the service must have recorded about it. */

/** Counts by name. */
export class Counts extends Map<string, number> {
  add(name: string, by = 1): void {
    this.set(name, (this.get(name) ?? 0) + by)
  }
}

/** The effects that callers know of. */
export interface Effects {
  /** Changes by their audited action. */
  readonly actions: Counts
  /** Events by type. */
  readonly events: Counts
}

export const noEffects = (): Effects => ({ actions: new Counts(), events: new Counts() })

/** A list of violations. The row fails unless it is empty. */
export class Findings {
  readonly all: Array<string> = []

  add(text: string): void {
    this.all.push(text)
  }

  /** Compares two sets of texts. A text that occurs more often than it should is surplus. */
  same(what: string, found: Iterable<string>, wanted: Iterable<string>): void {
    const missing = [...wanted]
    const surplus = [...found].filter((text) => {
      const at = missing.indexOf(text)
      if (at >= 0) missing.splice(at, 1)
      return at < 0
    })
    if (missing.length + surplus.length > 0) {
      this.add(`${what}: missing ${JSON.stringify(missing)}, surplus ${JSON.stringify(surplus)}`)
    }
  }
}
