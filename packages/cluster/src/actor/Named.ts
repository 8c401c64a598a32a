/**
 * What a message to an actor is called. The library's clients hand out effects that say nothing of it; whoever asks counts
 * them by name (`Ask`). Names are those of the protocols, so there are few.
 */
const names = new WeakMap<object, string>()

/** A client whose messages can be told apart: `Identity.ReceiveMail`. */
export const named = <Client extends object>(kind: string, of: (id: string) => Client): ((id: string) => Client) => {
  const labels = new Map<string, string>()
  const labelOf = (tag: string) => {
    let label = labels.get(tag)
    if (label === undefined) labels.set(tag, (label = `${kind}.${tag}`))
    return label
  }
  return (id) =>
    new Proxy(of(id), {
      get: (client, tag) => {
        const method: unknown = Reflect.get(client, tag)
        if (typeof method !== "function" || typeof tag !== "string") return method
        return (...args: ReadonlyArray<unknown>): unknown => {
          const message: unknown = Reflect.apply(method, client, args)
          if (typeof message === "object" && message !== null) names.set(message, labelOf(tag))
          return message
        }
      },
    })
}

/** What a message of such a client is called; `other` for any other effect. */
export const nameOf = (message: object): string => names.get(message) ?? "other"
