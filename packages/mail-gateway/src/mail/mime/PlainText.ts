/** The text of an HTML body, for snippets, search and readers that want no HTML. Tags go, line structure stays roughly. */

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " }

const entity = (whole: string, name: string): string => {
  if (!name.startsWith("#")) return entities[name.toLowerCase()] ?? whole
  const code = name[1] === "x" || name[1] === "X" ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10)
  return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : whole
}

/** Elements whose content is not text. */
const hidden = ["script", "style", "head", "title"]
const breaks = /^\/?(?:p|div|br|tr|li|h[1-6]|table|blockquote|ul|ol|hr)$/

/** One pass over the tags, so that no input makes it slow. */
export const fromHtml = (html: string): string => {
  let out = ""
  let at = 0
  while (at < html.length) {
    const open = html.indexOf("<", at)
    if (open < 0) {
      out += html.slice(at)
      break
    }
    out += html.slice(at, open)
    if (html.startsWith("<!--", open)) {
      const close = html.indexOf("-->", open + 4)
      at = close < 0 ? html.length : close + 3
      continue
    }
    const close = html.indexOf(">", open + 1)
    if (close < 0) break
    const name = /^\/?[a-z0-9]+/i.exec(html.slice(open + 1, open + 20))?.[0].toLowerCase() ?? ""
    at = close + 1
    if (hidden.includes(name)) {
      const end = indexOfTag(html, `</${name}`, at)
      at = end < 0 ? html.length : end
    } else if (breaks.test(name)) out += "\n"
  }
  return out
    .replace(/&(#?\w{1,10});/g, entity)
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?\n ?/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()
}

const indexOfTag = (html: string, tag: string, from: number): number => {
  for (let at = html.indexOf("</", from); at >= 0; at = html.indexOf("</", at + 2)) {
    if (html.slice(at, at + tag.length).toLowerCase() === tag) return at
  }
  return -1
}
