/**
 * Whether a reader sees the words of an element, as far as its own styles and those around it say: words that are not
 * shown, of no size, or of the colour of what they stand on are no words. Rough, and on the reader's side: what cannot be
 * told is taken for seen.
 */

type Rgb = readonly [number, number, number]

export interface Sight {
  readonly isShown: boolean
  /** Pixels. */
  readonly size: number
  readonly color: Rgb
  readonly ground: Rgb
}

const white: Rgb = [255, 255, 255]
export const open: Sight = { isShown: true, size: 16, color: [0, 0, 0], ground: white }

/** Below it letters are specks; and how far colours must be apart, each of three parts added. */
const least = { size: 5, contrast: 90 }

/** Names of what is nearly white, and of black. Others are taken for seen on anything. */
const names = new Map<string, Rgb>([
  ..."white snow ivory ghostwhite floralwhite mintcream azure aliceblue seashell honeydew whitesmoke transparent lavenderblush oldlace"
    .split(" ")
    .map((name) => [name, white] as const),
  ["black", [0, 0, 0]],
])

/** Undefined where it is not told from its name; what can be seen through is the ground. */
const colorOf = (text: string, ground: Rgb): Rgb | undefined => {
  if (text === "transparent") return ground
  const [, hex] = /^#([0-9a-f]{3,8})$/.exec(text) ?? []
  if (hex !== undefined) {
    const long = hex.length < 6 ? hex.replace(/./g, "$&$&") : hex
    if (long.length === 8 && parseInt(long.slice(6), 16) < 80) return ground
    return [0, 2, 4].map((at) => parseInt(long.slice(at, at + 2), 16)) as unknown as Rgb
  }
  const [, given] = /^rgba?\(([^)]*)\)$/.exec(text) ?? []
  if (given !== undefined) {
    const [red = 0, green = 0, blue = 0, alpha = 1] = given
      .split(/[\s,/]+/)
      .filter((one) => one !== "")
      .map((one, at) => (one.endsWith("%") ? (parseFloat(one) / 100) * (at < 3 ? 255 : 1) : parseFloat(one)))
    return alpha < 0.3 ? ground : [red, green, blue]
  }
  return names.get(text)
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
  const on = ground === undefined ? around.ground : (colorOf(ground, around.ground) ?? around.ground)
  const color = said.get("color") ?? lower(given.color)
  const size = said.get("font-size")
  return {
    isShown: around.isShown && said.get("display") !== "none",
    size: size === undefined ? around.size * (small.has(name) ? 0.83 : 1) : sizeOf(size, around.size),
    color: color === undefined ? around.color : (colorOf(color, on) ?? [0, 0, 0]),
    ground: on,
  }
}

export const isSeen = ({ isShown, size, color, ground }: Sight): boolean =>
  isShown &&
  size >= least.size &&
  color.reduce((sum, part, at) => sum + Math.abs(part - ground[at]!), 0) >= least.contrast
