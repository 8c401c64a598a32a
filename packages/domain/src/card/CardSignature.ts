/**
 * The signatures of an A2A card (A2A 1.0 section 8.4). A card is signed when it is written. The signatures are stored
 * with their basis: everything that determines the document, so that a reader knows without any cryptography whether they
 * belong to the document that it serves.
 */
import { Schema } from "effect"
import { type AddressBook, jwksUrl, tunnelUrl } from "../Addresses.ts"

/** A JWS in flattened form without its payload, which is the canonical card. */
const CardSignature = Schema.Struct({ protected: Schema.String, signature: Schema.String })

export const StoredSignatures = Schema.Struct({ basis: Schema.String, signatures: Schema.Array(CardSignature) })
export type StoredSignatures = typeof StoredSignatures.Type

/** The form of the document. Increase it if {@link module:Card} generates another document from the same fields. */
const form = 1

export const basisOf = (book: AddressBook, handle: string, version: number, locked: boolean): string =>
  JSON.stringify([form, version, locked, tunnelUrl(book, handle), jwksUrl(book, handle)])

type Document = Readonly<Record<string, unknown>>

/** Adds the signatures to the document if they belong to it. */
export const withSignatures = (document: Document, stored: StoredSignatures | null, basis: string): Document =>
  stored?.basis === basis ? { ...document, signatures: stored.signatures } : document

/** Members that A2A requires, which stay although they are empty. */
const required = new Set(["description", "skills", "tags", "name", "id", "capabilities"])

const isEmpty = (value: unknown): boolean =>
  value === "" ||
  value === null ||
  value === undefined ||
  (Array.isArray(value) ? value.length === 0 : typeof value === "object" && Object.keys(value).length === 0)

/** Removes empty lists, which Protocol Buffers do not distinguish from absent ones, except required members. */
const present = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(present)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      Array.isArray(member) && member.length === 0 && !required.has(name) ? [] : [[name, present(member)]],
    ),
  )
}

/** Removes every empty value, as the A2A SDKs do before they verify. */
const compact = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(compact).filter((member) => !isEmpty(member))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, member]) => [name, compact(member)] as const)
      .filter(([, member]) => !isEmpty(member)),
  )
}

/**
 * Returns the documents to sign: the one of the specification, in which required members stay although they are empty,
 * and the one that the SDKs rebuild, in which nothing is empty.
 */
export const signables = (document: Document): readonly [unknown, unknown] => [present(document), compact(document)]
