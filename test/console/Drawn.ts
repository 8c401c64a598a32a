/** Elements for components that are drawn without a browser. */

type Rect = Readonly<Record<"left" | "top" | "width" | "height" | "bottom", number>>

/** An element with its attributes, as far as components use elements. */
export class Drawn {
  readonly nodeType: 1 | 3
  readonly localName: string
  data = ""
  parentNode: Drawn | null = null
  readonly childNodes: Array<Drawn> = []
  readonly attributes: Record<string, string> = {}
  readonly #listeners: Record<string, (event: object) => void> = {}
  readonly namespaceURI = "http://www.w3.org/1999/xhtml"
  readonly style: Record<string, string> = {}
  readonly dataset: Record<string, string> = {}
  scrollTop = 0
  constructor(localName: string, text?: string) {
    this.nodeType = text === undefined ? 1 : 3
    this.localName = localName
    this.data = text ?? ""
  }
  get firstChild(): Drawn | null {
    return this.childNodes[0] ?? null
  }
  get nextSibling(): Drawn | null {
    return this.parentNode?.childNodes[this.parentNode.childNodes.indexOf(this) + 1] ?? null
  }
  get textContent(): string {
    return this.nodeType === 3 ? this.data : this.childNodes.map(({ textContent }) => textContent).join("")
  }
  get parentElement(): Drawn | null {
    return this.parentNode
  }
  insertBefore(node: Drawn, before: Drawn | null) {
    node.remove()
    this.childNodes.splice(before === null ? this.childNodes.length : this.childNodes.indexOf(before), 0, node)
    node.parentNode = this
  }
  appendChild(node: Drawn) {
    this.insertBefore(node, null)
  }
  removeChild(node: Drawn) {
    node.remove()
  }
  remove() {
    this.parentNode?.childNodes.splice(this.parentNode.childNodes.indexOf(this), 1)
    this.parentNode = null
  }
  contains(node: Drawn | null): boolean {
    return node !== null && (node === this || this.contains(node.parentNode))
  }
  setAttribute(name: string, value: unknown) {
    this.attributes[name] = String(value)
  }
  getAttribute(name: string) {
    return this.attributes[name] ?? null
  }
  removeAttribute(name: string) {
    delete this.attributes[name]
  }
  addEventListener(type: string, listener: (event: object) => void) {
    this.#listeners[type.toLowerCase()] = listener
  }
  removeEventListener(type: string) {
    delete this.#listeners[type.toLowerCase()]
  }
  /** Returns the place of an element. A test may set it, and then restores it. */
  static rectOf: (one: Drawn) => Rect = () => ({ left: 0, top: 0, width: 300, height: 100, bottom: 100 })
  getBoundingClientRect() {
    return Drawn.rectOf(this)
  }
  get clientHeight() {
    return this.getBoundingClientRect().height
  }
  get children(): ReadonlyArray<Drawn> {
    return this.childNodes.filter(({ nodeType }) => nodeType === 1)
  }
  showModal() {}
  close() {}
  focus() {}
  setSelectionRange() {}
  scrollIntoView() {}
  /** Finds an element by one of its attributes. Other selectors find nothing without a browser. */
  querySelector(selector: string) {
    const [, name, value] = /^\[([\w-]+)="([^"]*)"\]$/.exec(selector) ?? []
    return name === undefined ? null : (this.all({ [name]: value! })[0] ?? null)
  }
  /** Finds the nearest enclosing element that has an attribute. */
  closest(selector: string): Drawn | null {
    return selector.slice(1, -1) in this.attributes ? this : (this.parentNode?.closest(selector) ?? null)
  }
  /** Calls the listener of an event, and returns whether its default action was prevented. */
  fire(type: string, members: object = {}): boolean {
    let prevented = false
    const preventDefault = () => {
      prevented = true
    }
    this.#listeners[type]?.call(this, { type, currentTarget: this, target: this, preventDefault, ...members })
    return prevented
  }
  /** The elements within this one that have this name, or this attribute. */
  all(wanted: string | Readonly<Record<string, string>>): ReadonlyArray<Drawn> {
    const isWanted = (one: Drawn) =>
      typeof wanted === "string"
        ? one.localName === wanted
        : Object.entries(wanted).every(([name, value]) => one.attributes[name] === value)
    return this.childNodes.flatMap((one) => [...(isWanted(one) ? [one] : []), ...one.all(wanted)])
  }
}
