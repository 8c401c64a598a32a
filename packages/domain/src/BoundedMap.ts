/** A map of limited size. Storing a new key in a full map evicts the entry that was stored longest ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #capacity: number

  constructor(capacity: number) {
    super()
    this.#capacity = capacity
  }

  override set(key: K, value: V): this {
    this.delete(key)
    if (this.size >= this.#capacity) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }
}
