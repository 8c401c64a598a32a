/**
 * The MCP tools, derived from the endpoints with a `Tool` annotation. The arguments of a tool are the path, query and body
 * members of its endpoint in one object, with the schemas of the OpenAPI document.
 */
import { Api } from "@svc/domain/Api"
import { type EndpointPolicy, policyOf } from "@svc/domain/account/Policy"
import type { ScopeName } from "@svc/domain/account/Scope"
import { scopeOf } from "@svc/domain/account/EndpointScope"
import { Tool, type ToolEffect, type ToolInfo } from "@svc/domain/mcp/Tool"
import { Array as Arr, Context } from "effect"
import type { HttpMethod } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { document, ownRateLimit, who } from "../openapi/Document.ts"
import { boundArguments } from "./BoundedResult.ts"
import { inline, outputSchemaOf } from "./Output.ts"
import { repetitionArguments } from "./Repetition.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON Schema
type Json = Record<string, any>

/** A tool with its complete schemas; `ToolList.ts` makes the compact list from it. */
export interface ListedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Json
  readonly outputSchema: Json
  readonly annotations: Readonly<
    Record<"readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint", boolean>
  >
}

export interface BoundTool {
  readonly listed: ListedTool
  readonly method: HttpMethod.HttpMethod
  /** For example `/api/identities/:handle`. */
  readonly path: string
  readonly inPath: ReadonlyArray<string>
  readonly inQuery: ReadonlySet<string>
  readonly hasBody: boolean
  readonly effect: ToolEffect
  /** Additional arguments with their JSON Schema. */
  readonly extra: Json
  /** Result members with content written by outsiders. */
  readonly untrusted: ReadonlyArray<string>
  /** Members of each entry that the CLI shows as columns. */
  readonly columns: ReadonlyArray<string> | undefined
  /** Arguments that must not appear on a command line. */
  readonly secret: ReadonlySet<string>
  readonly policy: EndpointPolicy
  /** The required scope; null if none is required. */
  readonly scope: ScopeName | null
  /** The argument that selects this endpoint among those of its tool. */
  readonly choice: ToolInfo["choice"]
  /** The endpoints of a tool that has several, by the value of the argument that selects one of them. */
  readonly choices?: { readonly argument: string; readonly endpoints: ReadonlyMap<string, BoundTool> }
}

const hints: {
  readonly [E in ToolEffect]: { readonly read: boolean; readonly destructive: boolean; readonly idempotent: boolean }
} = {
  read: { read: true, destructive: false, idempotent: true },
  write: { read: false, destructive: false, idempotent: false },
  idempotent_write: { read: false, destructive: false, idempotent: true },
  destructive: { read: false, destructive: true, idempotent: true },
}

/** Returns the arguments of a tool that its endpoint does not have. */
const extraArguments = ({ name, effect }: ToolInfo): Json => ({
  ...boundArguments(name),
  ...repetitionArguments(effect),
})

const argumentsOf = (operation: Json, tool: ToolInfo): Json => {
  const properties: Json = {}
  const required: Array<string> = []
  for (const parameter of operation["parameters"] as ReadonlyArray<Json>) {
    if (parameter["in"] === "header") continue
    properties[parameter["name"]] = {
      ...(inline(parameter["schema"]) as Json),
      ...(parameter["description"] === undefined ? {} : { description: parameter["description"] }),
    }
    if (parameter["required"] === true) required.push(parameter["name"])
  }
  const body = inline(operation["requestBody"]?.content?.["application/json"]?.schema ?? {}) as Json
  Object.assign(properties, body["properties"] ?? {}, extraArguments(tool))
  required.push(...(body["required"] ?? []), ...(tool.requires ?? []))
  if (Object.keys(properties).length === 0) return { type: "object", additionalProperties: false }
  return {
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  }
}

/** Returns the operation's description without what the server's instructions state once: who may call, and rate limits. */
const descriptionOf = (endpoint: HttpApiEndpoint.Top, operation: Json, { advice }: ToolInfo): string => {
  const text: string = operation["description"]
  const own = text
    .replace(` ${who[policyOf(endpoint).scope]}`, "")
    .replace(/ Requires the scope `[^`]+`\./, "")
    .replace(` ${ownRateLimit}`, "")
  return advice === undefined ? own : `${own} ${advice}`
}

const bind = (endpoint: HttpApiEndpoint.Top): ReadonlyArray<BoundTool> => {
  const tool = Context.getOrUndefined(endpoint.annotations, Tool)
  if (tool === undefined) return []
  const operation = document["paths"][endpoint.path.replace(/:(\w+)/g, "{$1}")][endpoint.method.toLowerCase()]
  const { read, destructive, idempotent } = hints[tool.effect]
  const parameters = operation["parameters"] as ReadonlyArray<Json>
  return [
    {
      method: endpoint.method,
      path: endpoint.path,
      inPath: [...endpoint.path.matchAll(/:(\w+)/g)].map(([, one]) => one!),
      inQuery: new Set(parameters.filter((one) => one["in"] === "query").map((one) => one["name"])),
      hasBody: operation["requestBody"] !== undefined,
      secret: new Set(tool.secret ?? []),
      effect: tool.effect,
      extra: extraArguments(tool),
      untrusted: tool.untrusted ?? [],
      columns: tool.columns,
      policy: policyOf(endpoint),
      scope: scopeOf(endpoint),
      choice: tool.choice,
      listed: {
        name: tool.name,
        title: operation["summary"],
        description: descriptionOf(endpoint, operation, tool),
        inputSchema: argumentsOf(operation, tool),
        outputSchema: outputSchemaOf(operation, tool),
        annotations: {
          readOnlyHint: read,
          destructiveHint: destructive,
          idempotentHint: idempotent,
          openWorldHint: tool.external === true,
        },
      },
    },
  ]
}

/** The endpoints with a `Tool` annotation. */
export const endpoints: ReadonlyArray<BoundTool> = Object.values(Api.groups).flatMap(({ endpoints }) =>
  Object.values<HttpApiEndpoint.Top>(endpoints).flatMap(bind),
)

/** Returns the tool of these endpoints, which have the same caller, scope, path arguments and result. */
const toolOf = (all: Arr.NonEmptyReadonlyArray<BoundTool>): BoundTool => {
  const [first] = all
  if (first.choice === undefined) return first
  const { argument } = first.choice
  const byValue = new Map(all.map((one) => [one.choice!.value, one]))
  const lists = all.map(({ listed }) => listed)
  const isRequired = (name: string) => lists.every(({ inputSchema }) => inputSchema["required"].includes(name))
  const inputSchema = {
    ...first.listed.inputSchema,
    properties: {
      ...Object.assign({}, ...lists.map(({ inputSchema }) => inputSchema["properties"])),
      [argument]: { type: "string", enum: [...byValue.keys()], description: "What to do." },
    },
    required: [...first.listed.inputSchema["required"].filter(isRequired), argument],
  }
  const description = all.map(({ choice, listed }) => `\`${choice!.value}\`: ${listed.description}`).join(" ")
  return {
    ...first,
    listed: { ...first.listed, title: lists.map(({ title }) => title).join(" / "), description, inputSchema },
    choices: { argument, endpoints: byValue },
  }
}

export const tools: ReadonlyArray<BoundTool> = Object.values(Arr.groupBy(endpoints, ({ listed }) => listed.name)).map(
  toolOf,
)

export const byName: ReadonlyMap<string, BoundTool> = new Map(tools.map((tool) => [tool.listed.name, tool]))
