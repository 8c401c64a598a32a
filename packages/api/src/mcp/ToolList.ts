/**
 * Builds the result of `tools/list`. A model reads the complete list before its first call, so the list is compact: the server's
 * instructions state once what all tools have in common, an argument is described in one sentence at the first tool that has it, what
 * another argument or tool replaces is left out, and the endpoint checks bounds and formats, which its errors name. A call may use
 * everything that is left out. `?schemas=full` returns the complete schemas, for programs that generate code or validate results.
 */
import { type CallerInfo, soleOf } from "@svc/domain/account/Authorization"
import { mayCall } from "@svc/domain/account/PolicyEvaluation"
import { allows } from "@svc/domain/account/Scope"
import { BoundedMap } from "@svc/domain/BoundedMap"
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { type BoundTool, type ListedTool, tools } from "./Tools.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON Schema
type Json = Record<string, any>

/** Returns the toolset of a tool: the part of its scope before the colon. `svc_whoami`, which has none, is in every toolset. */
const toolsetOf = ({ scope }: BoundTool) => scope?.split(":")[0]

/** The toolsets that a client may select: `/api/mcp?tools=mail,vault`. */
export const toolsets: ReadonlySet<string> = new Set(tools.flatMap((tool) => toolsetOf(tool) ?? []))

/** Returns whether the selected toolsets contain a tool; without a selection all do. */
export const contains = (wanted: ReadonlyArray<string> | undefined, tool: BoundTool): boolean => {
  const own = toolsetOf(tool)
  return wanted === undefined || own === undefined || wanted.includes(own)
}

/** Arguments whose name says everything, or that the instructions describe. */
export const selfExplanatory: ReadonlySet<string> = new Set(
  [
    "handle identity limit cursor idempotency_key allow_duplicate id name description url subject cc bcc platform seen",
    "flagged uri value provider capabilities default_input_modes default_output_modes documentation_url icon_url status",
    "reason version in_reply_to references direction headers html thread_id step attachments text skills label type index seconds event_id nonce offset by reply_all expires_in part input_modes output_modes authorization_url algorithm audience decision",
  ].flatMap((names) => names.split(" ")),
)

/** The maximum number of values of an `enum` that are listed. The instructions list the Event types. */
const valuesAtMost = 12

/** Arguments of many tools that models rarely need; the instructions describe them. */
const everywhere = ["idempotency_key", "allow_duplicate"]
/** The lists whose entries are large enough to choose their number; `limit` of the others is not listed. */
const sized = ["svc_email_list", "svc_thread_list", "svc_event_list"]

const threading = ["in_reply_to", "references", "headers"]
/**
 * Arguments that another argument or tool of the list replaces: `query`, `cursor` and `svc_email_wait`, `part`, `reply_to_message`.
 * They are accepted all the same, and `?schemas=full` lists them.
 */
const replaced: Readonly<Record<string, ReadonlyArray<string>>> = {
  svc_email_list: ["offset", "wait", "after", "tag", "from", "label", "seen", "flagged"],
  svc_email_wait: ["tag", "from"],
  svc_email_get: ["html", "headers", "text_limit"],
  svc_email_send: threading,
  svc_email_draft: threading,
  svc_draft_update: threading,
}

/** Returns whether no other tool of the list replaces a tool: `svc_event_list`, with a `handle`, has the Events of an Identity. */
const isNeeded = ({ name }: ListedTool, _: number, all: ReadonlyArray<ListedTool>): boolean =>
  name !== "svc_identity_events" || !all.some((other) => other.name === "svc_event_list")

/** Members of a skill that default to those of the card. */
const ofSkill = ["input_modes", "output_modes"]

/** The sentence that the names of `secret` members and the documents make unnecessary. */
const shownOnce = " The response contains a secret that is returned only once."

/** Returns the first sentence of a description. */
const firstSentence = (text: string): string => /^.*?[.](?=\s|$)/s.exec(text)?.[0] ?? text

/** Returns the shape of a value: its type, its values if they are few, and the shapes of its parts. */
const shape = (schema: Json): Json => {
  const [some, none] = (schema["anyOf"] ?? []) as ReadonlyArray<Json>
  if (none?.["type"] === "null") {
    const { type, ...rest } = shape(some!)
    return { type: [type, "null"], ...rest }
  }
  // In a query, `true` and "true" are the same.
  if (schema["enum"]?.join() === "true,false") return { type: "boolean" }
  const { type, enum: values, properties, required, items, additionalProperties } = schema
  return {
    type,
    ...(values !== undefined && values.length <= valuesAtMost ? { enum: values } : {}),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries<Json>(properties).flatMap(([name, one]) =>
              ofSkill.includes(name) ? [] : [[name, shape(one)]],
            ),
          ),
        }),
    ...(required === undefined ? {} : { required }),
    ...(items === undefined ? {} : { items: shape(items) }),
    ...(typeof additionalProperties === "object" && additionalProperties["type"] !== undefined
      ? { additionalProperties: shape(additionalProperties) }
      : {}),
  }
}

/** Returns the shape of an argument that an earlier tool described: without descriptions and members. */
const repeatedShape = (schema: Json): Json => {
  const { type, items } = shape(schema)
  // Some model providers reject an array without the type of its items.
  return { type, ...(items === undefined ? {} : { items: { type: items["type"] } }) }
}

/** Returns the hints that differ from the protocol's defaults. The other hints have no meaning for a tool that only reads. */
const hintsOf = ({ readOnlyHint, destructiveHint, idempotentHint, openWorldHint }: ListedTool["annotations"]) =>
  readOnlyHint
    ? { readOnlyHint }
    : {
        ...(destructiveHint ? {} : { destructiveHint }),
        ...(idempotentHint ? { idempotentHint } : {}),
        ...(openWorldHint ? {} : { openWorldHint }),
      }

/** Returns a compact tool; `described` collects the arguments that tools before it have described. */
const compact = ({ name, description, inputSchema, annotations }: ListedTool, described: Set<string>) => {
  const { properties = {}, required } = inputSchema
  const argumentOf = ([argument, schema]: readonly [string, Json]) => {
    const mark = `${argument} ${JSON.stringify(schema)}`
    const isKnown = described.has(mark)
    described.add(mark)
    if (isKnown) return [argument, repeatedShape(schema)]
    return [
      argument,
      selfExplanatory.has(argument)
        ? shape(schema)
        : { ...shape(schema), description: firstSentence(schema["description"]) },
    ]
  }
  const unlisted = [...everywhere, ...(sized.includes(name) ? [] : ["limit"]), ...(replaced[name] ?? [])]
  const listed = Object.entries<Json>(properties).filter(([argument]) => !unlisted.includes(argument))
  return {
    name,
    description: description.replace(shownOnce, ""),
    inputSchema: {
      type: "object",
      ...(listed.length === 0 ? {} : { properties: Object.fromEntries(listed.map(argumentOf)) }),
      ...(required === undefined ? {} : { required }),
    },
    annotations: hintsOf(annotations),
  }
}

/** Returns the tool for a credential of one Identity, which may omit `handle`. */
const ofOne = ({ listed, inPath }: BoundTool): ListedTool => {
  if (!inPath.includes("handle")) return listed
  const { properties, required = [], ...rest } = listed.inputSchema
  const others = required.filter((name: string) => name !== "handle")
  const handle = { ...properties["handle"], description: "The Handle to act as. Defaults to your own." }
  const inputSchema = {
    ...rest,
    properties: { ...properties, handle },
    ...(others.length === 0 ? {} : { required: others }),
  }
  return { ...listed, inputSchema }
}

/** Cache of lists; credentials of the same kind with the same scopes have the same list. */
const lists = new BoundedMap<string, ReadonlyArray<unknown>>(1000)

export interface ListOptions {
  readonly toolsets?: ReadonlyArray<string> | undefined
  readonly schemas?: "compact" | "full"
}

/** Returns the selection in the query: `?tools=mail,vault` selects tools, `?schemas=full` their complete schemas. */
export const selectionOf = (url: string): ListOptions | InvalidRequest => {
  const query = new URL(url, "http://localhost").searchParams
  const schemas = query.get("schemas") ?? "compact"
  if (schemas !== "compact" && schemas !== "full") {
    const message = "Expected `compact` or `full`."
    return new InvalidRequest({ detail: `schemas: ${message}`, errors: [{ path: "schemas", message }] })
  }
  const names = query.getAll("tools").flatMap((list) => list.split(","))
  const wanted = new Set(names.map((name) => name.trim()).filter((name) => name !== ""))
  const unknown = [...wanted].find((name) => !toolsets.has(name))
  if (unknown !== undefined) {
    const known = [...toolsets].join(", ")
    return new InvalidRequest({
      detail: `There is no toolset ${unknown.slice(0, 100)}. The toolsets are ${known}.`,
      errors: [{ path: "tools", message: `Expected names of ${known}, separated by commas.` }],
    })
  }
  return { toolsets: wanted.size === 0 ? undefined : [...wanted], schemas }
}

/** Returns the tools that a credential may call, by its kind and its scopes. */
export const listFor = (
  caller: CallerInfo,
  { toolsets: wanted, schemas = "compact" }: ListOptions = {},
): ReadonlyArray<unknown> => {
  const isOfOne = soleOf(caller) !== null
  const some = caller.identities === null ? "" : isOfOne ? " of one" : " of some"
  const key = [caller.kind, some, caller.scopes.text, schemas, ...(wanted?.toSorted() ?? ["all"])].join(" ")
  const known = lists.get(key)
  if (known !== undefined) return known
  const full = tools
    .filter((tool) => mayCall(tool.policy, caller) && allows(caller.scopes, tool.scope) && contains(wanted, tool))
    .map((tool) => (isOfOne ? ofOne(tool) : tool.listed))
  const described = new Set<string>()
  const made = schemas === "full" ? full : full.filter(isNeeded).map((tool) => compact(tool, described))
  lists.set(key, made)
  return made
}
