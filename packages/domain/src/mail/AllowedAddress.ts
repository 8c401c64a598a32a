/**
 * An address as somebody names it for the list of Allowed Recipients: its domain may be in its own letters, as people type
 * it. It is kept as recipients are compared: in A-labels and in lower case. Addresses that mail came from are on the list
 * too, so what is one address at all can be named, though nothing could be sent to some of them.
 */
import { Schema, SchemaTransformation } from "effect"
import { EmailAddress } from "../account/Account.ts"
import { Text } from "../Text.ts"
import * as AddrSpec from "./AddrSpec.ts"

const isPlain = Schema.is(EmailAddress)

/** The form that is compared; undefined for what is no address. */
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
