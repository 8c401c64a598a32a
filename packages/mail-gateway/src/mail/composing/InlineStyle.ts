/**
 * Filters the declarations of a `style` attribute that style only the element itself. Anything that could move it
 * over other content, or enlarge it beyond its own, is removed: positions, transforms, negative or huge lengths,
 * heights, shadows, outlines, images, and every value that is not plain.
 */
import * as Colors from "@svc/cluster/html/Colors"

const word = /^[a-z-]{1,30}$/
const family = /^[\w\s,'"-]{1,200}$/

type Judge = (value: string) => boolean

const oneOf = (...words: ReadonlyArray<string>): Judge => {
  const known = new Set(words)
  return (value) => known.has(value)
}

/** The approximate size of each unit in pixels. */
const pixels: Readonly<Record<string, number>> = { px: 1, pt: 4 / 3, em: 16, rem: 16, ex: 8, ch: 8 }

/** Accepts lengths up to `most` pixels or `percent` percent. */
const length =
  (most: number, percent: number): Judge =>
  (value) => {
    const [, number, unit] = /^(\d{1,5}(?:\.\d{1,4})?)(px|pt|em|rem|ex|ch|%)?$/.exec(value) ?? []
    if (number === undefined) return false
    if (unit === "%") return Number(number) <= percent
    return unit === undefined ? Number(number) === 0 : Number(number) * pixels[unit]! <= most
  }

const several =
  (judge: Judge, most: number): Judge =>
  (value) => {
    const parts = value.split(/\s+/)
    return parts.length <= most && parts.every(judge)
  }

const anyOf =
  (...judges: ReadonlyArray<Judge>): Judge =>
  (value) =>
    judges.some((judge) => judge(value))

const matching =
  (pattern: RegExp): Judge =>
  (value) =>
    pattern.test(value)

const isColor: Judge = (value) => Colors.parse(value) !== undefined
const styles = oneOf("none", "solid", "dashed", "dotted", "double")
const line = length(20, 0)
const space = length(64, 20)
const width = anyOf(oneOf("auto"), length(2_000, 100))
const border = several(anyOf(line, styles, isColor), 3)

const sides = ["top", "right", "bottom", "left"]
const onSides = (name: string, judge: Judge, suffix = ""): ReadonlyArray<readonly [string, Judge]> =>
  sides.map((side) => [`${name}-${side}${suffix}`, judge])

const judges: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ["color", isColor],
  ["background-color", isColor],
  ["background", isColor],
  ["font-family", matching(family)],
  ["font-size", anyOf(matching(/^(?:x{0,2}-(?:small|large)|small|medium|large|smaller|larger)$/), length(96, 600))],
  ["font-weight", matching(/^(?:normal|bold|bolder|lighter|[1-9]00)$/)],
  ["font-style", oneOf("normal", "italic", "oblique")],
  ["text-decoration", oneOf("none", "underline", "line-through")],
  ["text-align", oneOf("left", "right", "center", "justify", "start", "end")],
  ["text-transform", oneOf("none", "uppercase", "lowercase", "capitalize")],
  ["vertical-align", oneOf("baseline", "top", "middle", "bottom", "sub", "super", "text-top", "text-bottom")],
  ["white-space", oneOf("normal", "nowrap", "pre", "pre-wrap", "pre-line")],
  ["word-break", matching(word)],
  ["overflow-wrap", matching(word)],
  ["line-height", anyOf(oneOf("normal"), matching(/^(?:1(?:\.\d+)?|2(?:\.\d+)?|3)$/), length(96, 300))],
  ["direction", oneOf("ltr", "rtl")],
  ["display", oneOf("none", "block", "inline", "inline-block", "table", "inline-table", "table-row", "table-cell")],
  ["float", oneOf("left", "right", "none")],
  ["clear", oneOf("left", "right", "both", "none")],
  ["list-style-type", matching(word)],
  ["width", width],
  ["max-width", width],
  ["min-width", width],
  ["margin", several(anyOf(oneOf("auto"), space), 4)],
  ["padding", several(space, 4)],
  ...onSides("margin", anyOf(oneOf("auto"), space)),
  ...onSides("padding", space),
  ["border", border],
  ...onSides("border", border),
  ["border-color", several(isColor, 4)],
  ["border-style", several(styles, 4)],
  ["border-width", several(line, 4)],
  ["border-radius", several(length(64, 50), 4)],
  ["border-collapse", oneOf("collapse", "separate")],
  ["border-spacing", several(line, 2)],
])

/** The maximum characters of an attribute. */
const most = 4_000

const spacing = /^(?:margin|padding)/

interface Filtered {
  readonly style: string
  /** Whether it sets margin or padding. */
  readonly spaced: boolean
}

/** Returns the allowed declarations. Margin and padding are only allowed if `roomy`. */
export const filter = (text: string, roomy: boolean): Filtered => {
  // Escapes and comments could hide any declaration.
  if (text.length > most || /[\\<>{}@]|\/\*/.test(text)) return { style: "", spaced: false }
  let spaced = false
  const kept = text.split(";").flatMap((declaration) => {
    const colon = declaration.indexOf(":")
    if (colon < 0) return []
    const name = declaration.slice(0, colon).trim().toLowerCase()
    const given = declaration
      .slice(colon + 1)
      .replace(/!\s*important\s*$/i, "")
      .trim()
    const value = name === "font-family" ? given : given.toLowerCase()
    if (judges.get(name)?.(value) !== true) return []
    if (spacing.test(name)) {
      if (!roomy) return []
      spaced ||= /[1-9]/.test(value)
    }
    return [`${name}:${value}`]
  })
  return { style: kept.join(";"), spaced }
}
