/**
 * Evaluates whether the text of an element is visible, from its styles and those of its ancestors. Hidden text, text of
 * zero size, text outside of the screen and text in the color of its background are not visible. Style sheets can only be
 * evaluated partly without a browser.
 */
import { type Color, parse } from "./Colors.ts"

type Rgb = Color["rgb"]

export interface TextVisibility {
  readonly isShown: boolean
  /** Font size in pixels. */
  readonly size: number
  readonly color: Rgb
  /** Background color; undefined if it is unknown (an image, a style sheet). */
  readonly ground: Rgb | undefined
}

export const open: TextVisibility = { isShown: true, size: 16, color: [0, 0, 0], ground: [255, 255, 255] }

/** Smallest legible font size, and smallest contrast (the sum of the differences of the three components) in sent mail. */
const least = { size: 5, contrast: 90 }
/** Smallest contrast in received mail, where pale grey text is common and rarely malicious. */
export const readingContrast = 50

/** Returns the visible color on a background, or undefined without a known color. A nearly transparent color is invisible. */
const colorOn = (ground: Rgb | undefined, text: string | undefined): Rgb | undefined => {
  const color = text === undefined ? undefined : parse(text)
  return color === undefined ? undefined : color.alpha < 0.3 ? ground : color.rgb
}

const units: Readonly<Record<string, number>> = { px: 1, pt: 4 / 3, rem: 16 }

const sizeOf = (text: string, around: number): number => {
  const [, number, unit = "px"] = /^([\d.]+)(px|pt|em|rem|ex|ch|%)?$/.exec(text) ?? []
  if (number !== undefined) {
    const given = Number(number)
    if (unit === "%") return (around * given) / 100
    if (unit === "em") return around * given
    return given * (units[unit] ?? around / 2)
  }
  if (text === "smaller") return around * 0.83
  return /^xx?-small$/.test(text) ? 10 : /small/.test(text) ? 13 : 16
}

/** Elements with a smaller font size than their parent. */
const small = new Set(["small", "sub", "sup"])

/** Parses the declarations of a `style` attribute, in lower case. */
const declarationsOf = (style: string): ReadonlyMap<string, string> =>
  new Map(
    style.split(";").flatMap((declaration): ReadonlyArray<readonly [string, string]> => {
      const colon = declaration.indexOf(":")
      if (colon < 0) return []
      const value = declaration.slice(colon + 1).toLowerCase()
      return [[declaration.slice(0, colon).trim().toLowerCase(), value.replace(/!\s*important/, "").trim()]]
    }),
  )

const isZero = (value: string | undefined) => value !== undefined && /^0(?:\.0*)?(?:[a-z]{1,4}|%)?$/.test(value)
const isFarOff = (value: string | undefined) =>
  value !== undefined && /^-\d{3,}(?:\.\d*)?(?:px|pt|em|rem|%)?$/.test(value)

/** Returns whether declarations hide an element, regardless of colors and font size. */
const hides = (said: ReadonlyMap<string, string>): boolean => {
  const { display, visibility, opacity, overflow = "", position, clip } = Object.fromEntries(said)
  if (display === "none" || visibility === "hidden" || visibility === "collapse") return true
  if (opacity !== undefined && /^0*(?:\.0\d*|\.)?%?$/.test(opacity) && opacity !== "") return true
  const boxes = ["height", "max-height", "width", "max-width"]
  if (/hidden|clip/.test(overflow) && boxes.some((name) => isZero(said.get(name)))) return true
  if (isFarOff(said.get("text-indent"))) return true
  if (position !== "absolute" && position !== "fixed") return false
  if (clip !== undefined && /^rect\((?:[\s,]*[01](?:px)?){4}\s*\)$/.test(clip)) return true
  return ["left", "top", "right", "bottom"].some((side) => isFarOff(said.get(side)))
}

const isPicture = (value: string | undefined) => value !== undefined && /url\(|gradient\(/.test(value)

/** Returns the size in the shorthand `font`. */
const sizeOfFont = (font: string | undefined) => /(?:^|\s)(\d[\d.]*(?:px|pt|em|rem|%)?)(?=[\s/])/.exec(font ?? "")?.[1]

/** Returns the visibility inside of an element with these styles and attributes. */
export const within = (
  around: TextVisibility,
  name: string,
  style: string,
  given: { readonly color: string | undefined; readonly bgcolor: string | undefined },
): TextVisibility => {
  const said = declarationsOf(style)
  const lower = (text: string | undefined) =>
    text
      ?.trim()
      .toLowerCase()
      .replace(/^(?=[0-9a-f]{6}$)/, "#")
  const ground = said.get("background-color") ?? said.get("background") ?? lower(given.bgcolor)
  const on =
    isPicture(said.get("background")) || isPicture(said.get("background-image"))
      ? undefined
      : (colorOn(around.ground, ground) ?? around.ground)
  const color = said.get("color") ?? lower(given.color)
  const size = said.get("font-size") ?? sizeOfFont(said.get("font"))
  return {
    isShown: around.isShown && !hides(said),
    size: size === undefined ? around.size * (small.has(name) ? 0.83 : 1) : sizeOf(size, around.size),
    color: colorOn(on, color) ?? around.color,
    ground: on,
  }
}

export const isSeen = ({ isShown, size, color, ground }: TextVisibility, contrast: number = least.contrast): boolean =>
  isShown &&
  size >= least.size &&
  (ground === undefined || color.reduce((sum, part, at) => sum + Math.abs(part - ground[at]!), 0) >= contrast)

/** Number of characters of style sheets that are read per message. */
const sheetAtMost = 64 * 1024

/**
 * The style sheets of a message: the classes and ids that they hide, and whether they set backgrounds or font sizes, since
 * an element's own styles are then not reliable.
 */
export class StyleSheet {
  #left = sheetAtMost
  readonly #hidden = new Set<string>()
  setsGround = false
  setsSize = false

  /** Reads the text of a `style` element. Skips rules in `@media` and similar blocks, which only apply to some screens. */
  add(text: string): void {
    const sheet = text
      .slice(0, this.#left)
      .replace(/\/\*[^]*?\*\//g, " ")
      .toLowerCase()
    this.#left -= Math.min(this.#left, text.length)
    this.setsGround ||= sheet.includes("background")
    this.setsSize ||= sheet.includes("font")
    let depth = 0
    let from = 0
    let selectors = ""
    for (const { 0: brace, index } of sheet.matchAll(/[{}]/g)) {
      const between = sheet.slice(from, index)
      from = index + 1
      if (brace === "{") {
        if (depth++ === 0) selectors = between
        continue
      }
      if (depth === 1) this.#rule(selectors, between)
      depth = Math.max(0, depth - 1)
    }
  }

  #rule(selectors: string, declarations: string): void {
    if (isSeen(within(open, "", declarations, { color: undefined, bgcolor: undefined }), 0)) return
    for (const selector of selectors.split(",")) {
      const name = /^\s*[a-z0-9]*([.#][\w-]+)\s*$/.exec(selector)?.[1]
      if (name !== undefined) this.#hidden.add(name)
    }
  }

  /** Returns whether an element with this id and these classes is hidden. */
  hides(id: string, classes: string): boolean {
    if (this.#hidden.size === 0) return false
    return (
      this.#hidden.has(`#${id.trim().toLowerCase()}`) ||
      classes
        .toLowerCase()
        .split(/\s+/, 20)
        .some((name) => this.#hidden.has(`.${name}`))
    )
  }
}
