/**
 * Whether a reader sees the words of an element, as far as its own styles and those around it say: words that are hidden,
 * of no size, moved off the screen, or of the colour of their background are not seen.
 */
import { type Color, parse } from "./Colors.ts"

type Rgb = Color["rgb"]

export interface TextVisibility {
  readonly isShown: boolean
  /** Pixels. */
  readonly size: number
  readonly color: Rgb
  /** The colour behind the words; undefined if it is unknown (an image, a style sheet). */
  readonly ground: Rgb | undefined
}

export const open: TextVisibility = { isShown: true, size: 16, color: [0, 0, 0], ground: [255, 255, 255] }

/** Below it letters are specks; and how far colours must be apart, each of three parts added, in what we send. */
const least = { size: 5, contrast: 90 }
/** How far colours must be apart in what others wrote: pale grey is seldom a trick. */
export const readingContrast = 50

/** What it looks like on this ground, or undefined where no colour is said; what is nearly transparent is the ground. */
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

/** Elements whose words are smaller than those around them. */
const small = new Set(["small", "sub", "sup"])

/** The declarations of a `style` attribute, in small letters. */
const declarationsOf = (style: string): ReadonlyMap<string, string> =>
  new Map(
    style.split(";").flatMap((one): ReadonlyArray<readonly [string, string]> => {
      const colon = one.indexOf(":")
      if (colon < 0) return []
      const value = one.slice(colon + 1).toLowerCase()
      return [[one.slice(0, colon).trim().toLowerCase(), value.replace(/!\s*important/, "").trim()]]
    }),
  )

const isZero = (value: string | undefined) => value !== undefined && /^0(?:\.0*)?(?:[a-z]{1,4}|%)?$/.test(value)
const isFarOff = (value: string | undefined) =>
  value !== undefined && /^-\d{3,}(?:\.\d*)?(?:px|pt|em|rem|%)?$/.test(value)

/** Whether declarations hide an element, whatever its colours and its size. */
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

/** The size that the shorthand `font` sets. */
const sizeOfFont = (font: string | undefined) => /(?:^|\s)(\d[\d.]*(?:px|pt|em|rem|%)?)(?=[\s/])/.exec(font ?? "")?.[1]

/** What is seen in an element with these styles and attributes. */
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
