/**
 * The shape of data that a schema writes, and whether another schema can read it: names of fields, whether they are optional, literals, and
 * members of unions. Checks of values are not part of it.
 */
import { type Schema, SchemaAST } from "effect"

/** A shape. Shapes refer to each other by their index in a table, so that each is stored once. */
export type Shape =
  | { readonly leaf: string }
  | { readonly literal: string | number | boolean }
  | { readonly list: ReadonlyArray<number>; readonly rest: ReadonlyArray<number> }
  | {
      readonly fields: Readonly<Record<string, number>>
      readonly optional: ReadonlyArray<string>
      readonly others: ReadonlyArray<number>
    }
  | { readonly oneOf: ReadonlyArray<number> }
  | { readonly of: string; readonly with: ReadonlyArray<number> }

export type Table = ReadonlyArray<Shape>

const isInteger = (ast: SchemaAST.AST): boolean => {
  const proves = (check: SchemaAST.Check<never>): boolean =>
    check.annotations?.representation?.id === "effect/schema/isInt" ||
    (check._tag === "FilterGroup" && check.checks.some(proves))
  return ast.checks?.some(proves) === true
}

const nameOf = (ast: SchemaAST.AST): string => {
  const representation: unknown = ast.annotations?.["representation"]
  return typeof representation === "object" && representation !== null && "id" in representation
    ? String(representation.id)
    : "unnamed"
}

/** Collects the shapes of many schemas in one table. */
export const makeTable = () => {
  const table: Array<Shape> = []
  const places = new Map<string, number>()
  const under = new Set<SchemaAST.AST>()

  const place = (shape: Shape): number => {
    const key = JSON.stringify(shape)
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, table.length)
    return table.push(shape) - 1
  }

  const walk = (ast: SchemaAST.AST): number => {
    switch (ast._tag) {
      case "Suspend": {
        const within = ast.thunk()
        return under.has(within) ? place({ leaf: "itself" }) : walk(within)
      }
      case "Objects": {
        under.add(ast)
        const properties = ast.propertySignatures.toSorted((one, other) =>
          String(one.name) < String(other.name) ? -1 : 1,
        )
        const shape = place({
          fields: Object.fromEntries(properties.map(({ name, type }) => [String(name), walk(type)])),
          optional: properties.filter(({ type }) => SchemaAST.isOptional(type)).map(({ name }) => String(name)),
          others: ast.indexSignatures.map(({ type }) => walk(type)),
        })
        under.delete(ast)
        return shape
      }
      case "Arrays":
        return place({ list: ast.elements.map(walk), rest: ast.rest.map(walk) })
      case "Union": {
        const members = ast.types.flatMap((type) => {
          const at = walk(type)
          const shape = table[at]!
          return "oneOf" in shape ? shape.oneOf : [at]
        })
        return place({ oneOf: [...new Set(members)].toSorted((one, other) => one - other) })
      }
      case "Literal":
        return place({ literal: typeof ast.literal === "bigint" ? String(ast.literal) : ast.literal })
      case "Declaration":
        return place({ of: nameOf(ast), with: ast.typeParameters.map((type) => walk(SchemaAST.toEncoded(type))) })
      case "Number":
        return place({ leaf: isInteger(ast) ? "Int" : "Number" })
      default:
        return place({ leaf: ast._tag })
    }
  }
  return { table: table as Table, add: (schema: Schema.Constraint) => walk(SchemaAST.toEncoded(schema.ast)) }
}

export interface Side {
  readonly table: Table
  readonly at: number
}

const saysOf = ({ table, at }: Side): string => {
  const shape = table[at]!
  if ("literal" in shape) return JSON.stringify(shape.literal)
  if ("leaf" in shape) return shape.leaf
  if ("of" in shape) return shape.of
  if ("fields" in shape) {
    const tag = shape.fields["_tag"] ?? shape.fields["code"]
    const named = tag === undefined ? undefined : table[tag]
    return named !== undefined && "literal" in named
      ? String(named.literal)
      : `{${Object.keys(shape.fields).join(", ")}}`
  }
  return "oneOf" in shape ? "one of several" : "a list"
}

/** Returns the differences that the reader does not understand, each with its path; empty if the reader understands everything. */
export const incompatibilities = (
  reader: Side,
  writer: Side,
  path = "",
  seen = new Set<string>(),
): ReadonlyArray<string> => {
  const pair = `${reader.at}/${writer.at}`
  if (seen.has(pair)) return []
  const below = new Set([...seen, pair])
  const [mine, theirs] = [reader.table[reader.at]!, writer.table[writer.at]!]
  const on = (one: number, other: number, name: string) =>
    incompatibilities({ ...reader, at: one }, { ...writer, at: other }, `${path}${name}`, below)
  const not = [`${path === "" ? "it" : path}: ${saysOf(reader)} cannot read ${saysOf(writer)}`]

  if ("oneOf" in theirs) return theirs.oneOf.flatMap((member) => on(reader.at, member, ""))
  if ("oneOf" in mine) {
    const tries = mine.oneOf.map((member) => on(member, writer.at, ""))
    if (tries.some((found) => found.length === 0)) return []
    // If a member of the reader's union has the same name, its differences are more helpful than the statement that no member matches.
    const named = mine.oneOf.findIndex((member) => saysOf({ ...reader, at: member }) === saysOf(writer))
    return named >= 0 && "fields" in theirs
      ? tries[named]!
      : [`${path === "" ? "it" : path}: ${saysOf(writer)} is not known`]
  }
  if ("fields" in mine && "fields" in theirs) {
    const missing = Object.keys(mine.fields).filter(
      (name) => !mine.optional.includes(name) && (theirs.fields[name] === undefined || theirs.optional.includes(name)),
    )
    return [
      ...missing.map((name) => `${path}.${name}: is missing`),
      ...Object.entries(mine.fields).flatMap(([name, at]) => {
        const other = theirs.fields[name]
        return other === undefined || missing.includes(name) ? [] : on(at, other, `.${name}`)
      }),
      ...mine.others.flatMap((at, n) => (theirs.others[n] === undefined ? [] : on(at, theirs.others[n], "[]"))),
    ]
  }
  if ("list" in mine && "list" in theirs) {
    if (mine.list.length !== theirs.list.length || mine.rest.length !== theirs.rest.length) return not
    return [
      ...mine.list.flatMap((at, n) => on(at, theirs.list[n]!, `[${n}]`)),
      ...mine.rest.flatMap((at, n) => on(at, theirs.rest[n]!, "[]")),
    ]
  }
  if ("of" in mine && "of" in theirs && mine.of === theirs.of && mine.with.length === theirs.with.length) {
    return mine.with.flatMap((at, n) => on(at, theirs.with[n]!, ""))
  }
  if ("literal" in mine && "literal" in theirs && mine.literal === theirs.literal) return []
  if ("leaf" in mine && "leaf" in theirs && mine.leaf === theirs.leaf) return []
  if ("leaf" in mine && mine.leaf === "String" && "literal" in theirs && typeof theirs.literal === "string") return []
  return not
}
