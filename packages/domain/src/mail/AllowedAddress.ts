/**
 * An address for the list of Allowed Recipients. Its domain may contain Unicode letters; it is stored in A-labels and
 * lower case, as recipients are compared. Senders of received mail are on the list too, so every valid address is
 * accepted, including addresses to which the service cannot send.
 */
import { Schema, SchemaTransformation } from "effect"
import { EmailAddress } from "../account/Account.ts"
import { Text } from "../Text.ts"
import * as AddrSpec from "./AddrSpec.ts"

const isPlain = Schema.is(EmailAddress)

/** Returns the form that is compared, or undefined if the text is not an address. */
export const keptAs = (text: string): string | undefined => {
  const parsed = AddrSpec.parse(text)
  if (parsed._tag === "Address") return AddrSpec.sameAs(parsed.address)
  return isPlain(text) ? AddrSpec.sameAs(text) : undefined
}

export const AllowedAddress = Text.annotate({ format: "idn-email" })
  .check(
    Schema.isMaxLength(320),
    Schema.makeFilter((text: string) => keptAs(text) !== undefined, { expected: "an email address" }),
  )
  .pipe(
    Schema.decodeTo(
      Schema.String,
      SchemaTransformation.transform({ decode: (text) => keptAs(text) ?? text, encode: (address) => address }),
    ),
  )
