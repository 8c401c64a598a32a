/** What servers said of themselves, for a while: a bounded store in memory, as the libraries ask for one. */

/** How many servers are remembered; the one that was learnt first is forgotten first. */
const atMost = 1_000

export class BoundedStore<V> {
  readonly #entries = new Map<string, { readonly value: V; readonly until: number }>()
  readonly #millis: number

  constructor(millis: number) {
    this.#millis = millis
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    // oxlint-disable-next-line no-restricted-properties -- the libraries read the same clock
    return entry === undefined || entry.until < Date.now() ? undefined : entry.value
  }

  set(key: string, value: V): void {
    this.#entries.delete(key)
    if (this.#entries.size >= atMost) this.#entries.delete(this.#entries.keys().next().value!)
    this.#entries.set(key, { value, until: Date.now() + this.#millis })
  }

  del(key: string): void {
    this.#entries.delete(key)
  }
}
