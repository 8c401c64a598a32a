/**
 * Computes threads of messages by references or by subject (RFC 5256), in time proportional to messages and references
 * and in slices.
 */
import * as BaseSubject from "./BaseSubject.ts"
import * as CooperativeWork from "./CooperativeWork.ts"
import type { Threadable } from "./Store.ts"

interface Container {
  message: Threadable | undefined
  parent: Container | undefined
  children: Array<Container>
}

/** Maximum depth of threads: deeper messages are siblings. */
const deepest = 100

const byDate = (a: Threadable, b: Threadable) => a.sent - b.sent || a.uid - b.uid

const firstOf = (container: Container): Threadable => {
  let at: Container | undefined = container
  while (at !== undefined && at.message === undefined) at = at.children[0]
  // A container without a message has children, since empty ones were pruned.
  return at!.message!
}

const order = (containers: ReadonlyArray<Container>) =>
  CooperativeWork.sorted(containers, (a, b) => byDate(firstOf(a), firstOf(b)))

/** Maximum ancestors that are checked for loops: a deeper message starts its own thread. */
const farthest = 200

const isAbove = (above: Container, below: Container): boolean => {
  let at: Container | undefined = below
  for (let steps = 0; at !== undefined; at = at.parent) if (at === above || ++steps > farthest) return true
  return false
}

const adopt = (parent: Container, child: Container) => {
  child.parent = parent
  parent.children.push(child)
}

/** Step 1: links messages to their parents. */
function* linked(messages: ReadonlyArray<Threadable>): CooperativeWork.CooperativeWork<ReadonlyArray<Container>> {
  const byId = new Map<string, Container>()
  const all: Array<Container> = []
  const make = (message: Threadable | undefined): Container => {
    const container: Container = { message, parent: undefined, children: [] }
    all.push(container)
    return container
  }
  const named = (id: string): Container => {
    const known = byId.get(id)
    if (known !== undefined) return known
    const made = make(undefined)
    byId.set(id, made)
    return made
  }
  let looked = 0
  for (const message of messages) {
    // A message with many references costs as much as many messages.
    looked += 1 + message.references.length
    if (looked >= CooperativeWork.step) {
      looked = 0
      yield
    }
    const known = message.messageId === null ? undefined : named(message.messageId)
    // A second message with the same Message-ID is separate.
    const own = known === undefined || known.message !== undefined ? make(message) : known
    own.message = message
    let parent: Container | undefined
    for (const id of message.references) {
      const next = named(id)
      if (parent !== undefined && next.parent === undefined && next !== parent && !isAbove(next, parent))
        adopt(parent, next)
      parent = next
    }
    // A message's own references replace the parent that other messages implied, even if the result is no parent or a
    // loop (section 3, step 1.B). The old parent still lists this child, and this message may be listed twice: see
    // `pruned`.
    own.parent = undefined
    if (parent !== undefined && parent !== own && !isAbove(own, parent)) adopt(parent, own)
  }
  return all.filter(({ parent }) => parent === undefined)
}

/**
 * Step 3: removes containers without a message and promotes their children; a root container is kept if it has several
 * children.
 */
function* pruned(containers: ReadonlyArray<Container>): CooperativeWork.CooperativeWork<ReadonlyArray<Container>> {
  // From the leaves up without recursion, since references can be nested arbitrarily deep.
  const stack = [...containers]
  const upwards: Array<Container> = []
  while (stack.length > 0) {
    const container = stack.pop()!
    // Keeps each child once and only if this is its parent; otherwise the tree could contain loops.
    container.children = [...new Set(container.children)].filter((child) => child.parent === container)
    for (const child of container.children) stack.push(child)
    if (upwards.push(container) % CooperativeWork.step === 0) yield
  }
  for (let at = upwards.length - 1; at >= 0; at--) {
    if (at % CooperativeWork.step === 0) yield
    const container = upwards[at]!
    container.children = container.children.flatMap((child) => (child.message === undefined ? child.children : [child]))
    for (const child of container.children) child.parent = container
  }
  return containers.flatMap((root) =>
    root.message !== undefined || root.children.length > 1
      ? [root]
      : root.children.map((child) => ({ ...child, parent: undefined })),
  )
}

/** Step 5: merges roots with the same subject. */
function* gathered(roots: ReadonlyArray<Container>): CooperativeWork.CooperativeWork<ReadonlyArray<Container>> {
  const bySubject = new Map<string, Container>()
  const subjects = new Map(
    yield* CooperativeWork.each(roots, (root) => [root, BaseSubject.of(firstOf(root).subject)] as const),
  )
  // A container created here is not a root and has the subject of its first message.
  const subjectOf = (root: Container) => subjects.get(root) ?? BaseSubject.of(firstOf(root).subject)
  let looked = 0
  for (const root of roots) {
    if (++looked % CooperativeWork.step === 0) yield
    const { text, isReply } = subjectOf(root)
    const held = bySubject.get(text)
    if (held === undefined || (held.message !== undefined && root.message === undefined)) bySubject.set(text, root)
    else if (held.message !== undefined && subjectOf(held).isReply && !isReply) bySubject.set(text, root)
  }
  const out = new Set<Container>()
  for (const root of roots) {
    if (++looked % CooperativeWork.step === 0) yield
    const { text, isReply } = subjectOf(root)
    const held = text === "" ? undefined : bySubject.get(text)
    if (held === undefined || held === root) {
      out.add(root)
      continue
    }
    if (root.message === undefined && held.message === undefined) held.children.push(...root.children)
    else if (held.message === undefined || (isReply && !subjectOf(held).isReply)) adopt(held, root)
    else {
      const both: Container = { message: undefined, parent: undefined, children: [] }
      adopt(both, held)
      adopt(both, root)
      out.add(both)
      bySubject.set(text, both)
    }
  }
  return [...out].filter((root) => root.parent === undefined)
}

function* sortAll(roots: ReadonlyArray<Container>): CooperativeWork.CooperativeWork<ReadonlyArray<Container>> {
  const inOrder = yield* order(roots)
  const stack = inOrder.filter(({ children }) => children.length > 0)
  let looked = 0
  while (stack.length > 0) {
    const container = stack.pop()!
    container.children = yield* order(container.children)
    for (const child of container.children) if (child.children.length > 0) stack.push(child)
    looked += container.children.length
    if (looked < CooperativeWork.step) continue
    looked = 0
    yield
  }
  return inOrder
}

const write = (container: Container, numberOf: (uid: number) => number, depth: number): string => {
  const own = container.message === undefined ? "" : String(numberOf(container.message.uid))
  const { children } = container
  if (children.length === 0) return own
  if (depth >= deepest)
    return [own, ...flat(children).map((uid) => `(${numberOf(uid)})`)].filter((part) => part !== "").join(" ")
  if (children.length === 1 && own !== "") return `${own} ${write(children[0]!, numberOf, depth + 1)}`
  return `${own}${own === "" ? "" : " "}${children.map((child) => `(${write(child, numberOf, depth + 1)})`).join("")}`
}

const flat = (containers: ReadonlyArray<Container>): ReadonlyArray<number> => {
  const stack = [...containers]
  const uids: Array<number> = []
  while (stack.length > 0) {
    const { message, children } = stack.pop()!
    if (message !== undefined) uids.push(message.uid)
    for (const child of children) stack.push(child)
  }
  return uids
}

function* writeAll(
  roots: ReadonlyArray<Container>,
  numberOf: (uid: number) => number,
): CooperativeWork.CooperativeWork<string> {
  return (yield* CooperativeWork.each(roots, (root) => `(${write(root, numberOf, 0)})`)).join("")
}

/** Returns the THREAD response by references; `numberOf` maps UIDs to numbers. */
export function* references(
  messages: ReadonlyArray<Threadable>,
  numberOf: (uid: number) => number,
): CooperativeWork.CooperativeWork<string> {
  const roots = yield* order(yield* pruned(yield* linked(messages)))
  return yield* writeAll(yield* sortAll(yield* gathered(roots)), numberOf)
}

export function* orderedSubject(
  messages: ReadonlyArray<Threadable>,
  numberOf: (uid: number) => number,
): CooperativeWork.CooperativeWork<string> {
  const bySubject = new Map<string, Array<Threadable>>()
  yield* CooperativeWork.each(yield* CooperativeWork.sorted(messages, byDate), (message) => {
    const { text } = BaseSubject.of(message.subject)
    const thread = bySubject.get(text)
    if (thread === undefined) bySubject.set(text, [message])
    else thread.push(message)
  })
  const threads = yield* CooperativeWork.each(bySubject.values(), ([first, ...rest]): Container => ({
    message: first,
    parent: undefined,
    children: rest.map((message) => ({ message, parent: undefined, children: [] })),
  }))
  return yield* writeAll(threads, numberOf)
}
