/**
 * Unwraps `format=flowed` text (RFC 3676): a line that ends in a space is joined with the next one of the same quote
 * depth.
 */

const depthOf = (line: string): number => {
  let depth = 0
  while (line.charCodeAt(depth) === 62) depth++
  return depth
}

/** Lines end in LF. If `delSp`, the space at a line break is removed. */
export const unwrap = (text: string, delSp: boolean): string => {
  const out: Array<string> = []
  let flowing: { depth: number; pieces: Array<string> } | undefined
  const flush = () => {
    if (flowing !== undefined) out.push(quoted(flowing.depth, flowing.pieces.join("")))
    flowing = undefined
  }
  for (const line of text.split("\n")) {
    const depth = depthOf(line)
    const stuffed = line.charCodeAt(depth) === 32
    const content = line.slice(stuffed ? depth + 1 : depth)
    // A signature separator is never flowed (section 4.3).
    const flows = content.endsWith(" ") && content !== "-- "
    if (flowing !== undefined && (flowing.depth !== depth || content === "-- ")) flush()
    const piece = flows && delSp ? content.slice(0, -1) : content
    if (flowing !== undefined) flowing.pieces.push(piece)
    else if (flows) flowing = { depth, pieces: [piece] }
    else out.push(quoted(depth, content))
    if (!flows) flush()
  }
  flush()
  return out.join("\n")
}

const quoted = (depth: number, content: string): string => (depth === 0 ? content : `${">".repeat(depth)} ${content}`)
