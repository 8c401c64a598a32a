/**
 * The rules of Handles (interface.md "Handle rules"). Spellings that differ only in case or hyphens are the same
 * Handle, whose {@link canonical} form is compared. The store decides whether a Handle is taken.
 */
import { reserved } from "./Reserved.ts"

export const minimumLength = 3
export const maximumLength = 63

/**
 * Returns the form by which Handles are compared: lower case, without hyphens. References to existing Identities may
 * start with `@`, since people and models write `@ada`; a Handle that is claimed may not.
 */
export const canonical = (spelling: string): string =>
  (spelling.startsWith("@") ? spelling.slice(1) : spelling).toLowerCase().replaceAll("-", "")

export type Checked =
  | { readonly _tag: "Ok"; readonly handle: string; readonly canonical: string }
  | { readonly _tag: "Invalid"; readonly detail: string }
  | { readonly _tag: "Reserved"; readonly detail: string }

const invalid = (detail: string): Checked => ({ _tag: "Invalid", detail })

/**
 * Validates a Handle for registration and returns it in lower case. `brand` is the vendor's name, which no Handle may
 * contain.
 */
export const check = (given: string, options: { readonly brand: string }): Checked => {
  // This check precedes lower-casing, which would turn the Kelvin sign into a plain k.
  if (!/^[A-Za-z0-9-]*$/.test(given)) {
    return invalid(`A Handle can contain only a-z, 0-9 and hyphens.${given.startsWith("@") ? " Omit the @." : ""}`)
  }
  const handle = given.toLowerCase()
  if (handle.length > maximumLength) return invalid(`A Handle can have at most ${maximumLength} characters.`)
  if (handle.startsWith("-") || handle.endsWith("-")) return invalid("A Handle cannot begin or end with a hyphen.")
  const name = canonical(handle)
  if (name.length < minimumLength) {
    return invalid(`A Handle needs at least ${minimumLength} characters, not counting hyphens.`)
  }
  // Names of this form, such as `xn--`, are reserved for internationalised labels (RFC 5891 section 4.2.3.1).
  if (handle.slice(2, 4) === "--") return invalid("A Handle cannot have hyphens as its third and fourth characters.")
  const brand = options.brand.toLowerCase().replace(/[^a-z0-9]/g, "")
  const branded = brand !== "" && name.includes(brand)
  return reserved.has(name) || branded
    ? { _tag: "Reserved", detail: "The name is reserved. If you hold the rights to it, contact support." }
    : { _tag: "Ok", handle, canonical: name }
}
