/**
 * Small changes of a source file: an operator, a limit that is one higher, a condition that always holds, a statement or a
 * line of SQL that is missing, a call without its retry. The file contains many changes at once, each with a number and a
 * condition, so that one process can try them in turn without loading the file again ({@link file://./ChangeRunner.ts}).
 */
import { parseAst } from "vitest/node"

export interface Change {
  readonly line: number
  readonly what: string
  readonly start: number
  readonly end: number
  /** Returns the replacement, which is the original unless the condition holds. */
  readonly replacement: (isActive: string) => string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** Name of the global function that returns whether a change is active. The runner sets it before the tests import a module. */
export const hook = "isSvcChangeActive"

const operators: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
}
const opposites = new Map(Object.entries({ some: "every", every: "some", min: "max", max: "min" }))
/** Methods whose call can be left out, because they return a value of the same type. */
const steps = new Set(["slice", "toLowerCase", "trim", "trimEnd", "toWellFormed", "filter", "toSorted", "toReversed"])
/** Functions of `Effect` that can be left out of a `pipe`. */
const stages = new Set(
  `tap andThen ensuring onExit onError onInterrupt retry repeat timeout catch catchTag catchTags catchIf catchCause tapError mapError
  when uninterruptible ignore orDie`.split(/\s+/),
)
/** Lines, conditions and words of SQL statements that can be left out, and comparisons. */
const sqlParts = [
  /\n[ \t]*(?:and|or) [^\n`]*/g,
  /(?<=\b(?:where|on) )(?:\$\{[^{}`]*\}|[^\n`()$])*? and /g,
  /(?<=\S) and (?:\$\{[^{}`]*\}|[^\n`()$])*?(?= and | or |\)|[ \t]*\n|`)/g,
  /(?<=\s)[<>]=?(?=\s)/g,
  / for update(?: skip locked)?| for share| nulls (?:first|last)| desc\b| distinct\b/g,
  /, [a-z_]+ = (?:excluded\.[a-z_]+|now\(\)|null|false|true|[a-z_]+ \+ 1)/g,
]
/** Members of nodes that contain types. */
const types = /^(?:typeAnnotation|typeParameters|typeArguments|returnType|superClass)$/

const parses = (text: string) => {
  try {
    parseAst(text, { lang: "ts" })
    return true
  } catch {
    return false
  }
}

/** Returns the changes inside functions. Code outside of functions runs when the module is loaded, so it cannot be changed later. */
export const changesOf = (source: string, lang: "ts" | "tsx" = "ts"): ReadonlyArray<Change> => {
  const changes: Array<Change> = []
  const text = ({ start, end }: Node) => source.slice(start, end)
  const add = (node: Node, what: string, replacement: Change["replacement"], at = node.start) =>
    changes.push({ line: source.slice(0, at).split("\n").length, what, start: node.start, end: node.end, replacement })
  const instead = (node: Node, what: string, other: string, at?: number) =>
    add(node, what, (isActive) => `(${isActive} ? ${other} : (${text(node)}))`, at)

  const ofCall = (node: Node, parent: Node | undefined) => {
    const callee = node["callee"] as Node
    if (callee.type !== "MemberExpression") return
    const [on, method] = [callee["object"] as Node, callee["property"] as Node]
    const name = text(method)
    if (steps.has(name)) instead(node, `without .${name}`, `(${text(on)})`)
    const opposite = opposites.get(name)
    if (opposite !== undefined && (text(on) === "Math" || name.length > 3)) {
      instead(
        node,
        `${name} -> ${opposite}`,
        source.slice(node.start, method.start) + opposite + source.slice(method.end, node.end),
      )
    }
    const isStage = parent?.type === "CallExpression" && /\bpipe$/.test(text(parent["callee"] as Node))
    if (isStage && text(on) === "Effect" && stages.has(name))
      instead(node, `without Effect.${name}`, "((same: any) => same)")
  }

  const ofSql = (node: Node) => {
    const statement = text(node)
    for (const { 0: part, index } of sqlParts.flatMap((parts) => [...statement.matchAll(parts)])) {
      const other = operators[part] ?? ""
      const changed = statement.slice(0, index) + other + statement.slice(index + part.length)
      if (!parses(`function* statement() { return ${changed} }`)) continue
      const what = other === "" ? `without "${part.trim()}"` : `${part} -> ${other}`
      instead(node, what, changed, node.start + index + part.search(/\S/))
    }
  }

  const ofExpression = (node: Node, parent: Node | undefined) => {
    const [left, right] = [node["left"], node["right"]]
    switch (node.type) {
      case "BinaryExpression": {
        const [operator, other] = [String(node["operator"]), operators[String(node["operator"])]]
        if (!isNode(left) || !isNode(right) || other === undefined) return
        const isText = operator === "+" && /["'`]/.test(text(node))
        if (!isText) instead(node, `${operator} -> ${other}`, `((${text(left)}) ${other} (${text(right)}))`)
        return
      }
      case "LogicalExpression":
        if (!isNode(left) || !isNode(right)) return
        instead(node, `without the right side of ${String(node["operator"])}`, `(${text(left)})`)
        if (node["operator"] !== "??")
          instead(node, `without the left side of ${String(node["operator"])}`, `(${text(right)})`)
        return
      case "ConditionalExpression":
        instead(node, "always the first", `(${text(node["consequent"] as Node)})`)
        instead(node, "always the second", `(${text(node["alternate"] as Node)})`)
        return
      case "Literal": {
        const { value } = node
        if (parent?.type === "Property" && parent["key"] === node) return
        if (typeof value === "number") instead(node, `${text(node)} -> ${value + 1}`, String(value + 1))
        if (typeof value === "boolean") instead(node, `${value} -> ${!value}`, String(!value))
        return
      }
      case "UnaryExpression":
        if (node["operator"] === "!") instead(node, "without !", `(${text(node["argument"] as Node)})`)
        return
      case "CallExpression":
        return ofCall(node, parent)
      case "TaggedTemplateExpression":
        if (/sql$/i.test(text(node["tag"] as Node))) ofSql(node)
    }
  }

  const visit = (node: unknown, parent: Node | undefined, depth: number, isChained: boolean): void => {
    if (Array.isArray(node)) return node.forEach((one) => visit(one, parent, depth, isChained))
    if (!isNode(node) || /^(?:Import|ExportAll)/.test(node.type)) return
    if (node.type.startsWith("TS") && !/^TS(?:As|NonNull|Satisfies)Expression$/.test(node.type)) return
    if (depth > 0) {
      // A line that begins with a parenthesis would continue the line before it, and a part of a chain is no expression.
      if (!isChained && parent?.type !== "ExpressionStatement") ofExpression(node, parent)
      if (node.type === "IfStatement") {
        const test = node["test"] as Node
        add(test, "if (true)", (isActive) => `${isActive} ? true : (${text(test)})`)
        add(test, "if (false)", (isActive) => `${isActive} ? false : (${text(test)})`)
      }
      if (node.type === "ExpressionStatement" && !/^(?:super\b|["'])/.test(text(node))) {
        add(node, "without the statement", (isActive) => `{ if (!${isActive}) { ${text(node)} } }`)
      }
    }
    const within = depth + (node.type.includes("Function") ? 1 : 0)
    for (const [member, child] of Object.entries(node)) {
      if (types.test(member)) continue
      const continues = isChained && /^(?:Member|Call)Expression$/.test(node.type) && /^(?:object|callee)$/.test(member)
      visit(child, node, within, node.type === "ChainExpression" || continues)
    }
  }
  visit(parseAst(source, { lang }).body, undefined, 0, false)
  return changes
}

/**
 * Writes as many of the changes as possible into the source, and returns the others, which overlap them. The first one
 * gets the number `first`, the next one the number after it.
 */
export const planted = (source: string, changes: ReadonlyArray<Change>, first: number) => {
  const [taken, others]: [Array<Change>, Array<Change>] = [[], []]
  for (const change of changes) {
    const isFree = taken.every(({ start, end }) => change.end <= start || end <= change.start)
    ;(isFree ? taken : others).push(change)
  }
  let text = source
  const numbers = new Map(taken.map((change, at) => [change, first + at]))
  for (const change of taken.toSorted((one, other) => other.start - one.start)) {
    const isActive = `${hook}(${numbers.get(change)})`
    text = text.slice(0, change.start) + change.replacement(isActive) + text.slice(change.end)
  }
  const head = `const ${hook}: any = (globalThis as any).${hook} ?? (() => false);`
  return { text: text.replace(/^(?:#!.*\n)?/, (line) => line + head), taken, others }
}
