/** Reads the beginning of a stored message or attachment as text, without downloading the rest. */
import { Unreachable } from "./Client.ts"

/** Maximum number of characters that a page shows. */
export const shownAtMost = 200_000

export const beginning = async (path: string, signal: AbortSignal): Promise<string> => {
  const response = await fetch(path, { signal })
  if (!response.ok || response.body === null) throw new Unreachable(`not a response of the service: ${response.status}`)
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ""
  while (text.length < shownAtMost) {
    const { done, value } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  await reader.cancel()
  return text.slice(0, shownAtMost)
}
