/**
 * Whether a reader sees the words of an element, as far as its own styles and those around it say: words that are not
 * shown, of no size, or of the colour of what they stand on are no words.
 */
import { type Color, parse } from "./Colors.ts"

type Rgb = Color["rgb"]

export interface Sight {
  readonly isShown: boolean
  /** Pixels. */
  readonly size: number
  readonly color: Rgb
  readonly ground: Rgb
}

export const open: Sight = { isShown: true, size: 16, color: [0, 0, 0], ground: [255, 255, 255] }

/** Below it letters are specks; and how far colours must be apart, each of three parts added. */
const least = { size: 5, contrast: 90 }

/** What it looks like on this ground, or undefined where no colour is said; what is nearly transparent is the ground. */
const colorOn = (ground: Rgb, text: string | undefined): Rgb | undefined => {
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

/** What is seen in an element with these styles and attributes, which were let through. */
export const within = (
  around: Sight,
  name: string,
  style: string,
  given: { readonly color: string | undefined; readonly bgcolor: string | undefined },
): Sight => {
  const said = new Map(
    style.split(";").map((one): readonly [string, string] => {
      const colon = one.indexOf(":")
      return [one.slice(0, Math.max(colon, 0)), one.slice(colon + 1)]
    }),
  )
  const lower = (text: string | undefined) => text?.trim().toLowerCase()
  const ground = said.get("background-color") ?? said.get("background") ?? lower(given.bgcolor)
  const on = colorOn(around.ground, ground) ?? around.ground
  const color = said.get("color") ?? lower(given.color)
  const size = said.get("font-size")
  return {
    isShown: around.isShown && said.get("display") !== "none",
    size: size === undefined ? around.size * (small.has(name) ? 0.83 : 1) : sizeOf(size, around.size),
    color: colorOn(on, color) ?? around.color,
    ground: on,
  }
}

export const isSeen = ({ isShown, size, color, ground }: Sight): boolean =>
  isShown &&
  size >= least.size &&
  color.reduce((sum, part, at) => sum + Math.abs(part - ground[at]!), 0) >= least.contrast
