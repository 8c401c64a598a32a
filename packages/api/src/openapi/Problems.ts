/** The problems of each operation: those it declares, minus those that its policy rules out. */
import { type EndpointPolicy, policyOf, type Scope, ShowsSecret } from "@svc/domain/account/Policy"
import type { ScopeName } from "@svc/domain/account/Scope"
import { scopeOf } from "@svc/domain/account/EndpointScope"
import { type Code, table } from "@svc/domain/problems/Table"
import { Context, SchemaAST } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import type { Json } from "./Shapes.ts"

/** Authorization problems that are possible for each kind of caller. */
const denials: { readonly [S in Scope]: ReadonlyArray<Code> } = {
  public: [],
  any: ["foreign_identity"],
  org: ["org_scope_required"],
  admin: ["admin_required"],
  session: ["session_required"],
}
const anyDenial = Object.values(denials).flat()

/** Codes that the general middleware declares everywhere, although this operation cannot return them. */
const cannotCome = (
  operation: Json,
  { scope, names, proves }: EndpointPolicy,
  needed: ScopeName | null,
  method: string,
): ReadonlySet<string> => {
  const impossible = new Set<string>(anyDenial.filter((code) => !denials[scope].includes(code)))
  if (proves === "caller") impossible.add("identity_not_granted")
  // Only keys and grants can lack a scope, and the policy rejects both earlier.
  if (needed === null || scope === "session") impossible.add("scope_missing")
  // This code is only returned for repeats whose response was not stored.
  impossible.add("conflict")
  if (names._tag === "Nowhere") impossible.add("not_found")
  if (operation["requestBody"] === undefined) impossible.add("payload_too_large").add("unsupported_media_type")
  if (method === "get") impossible.add("idempotency_key_in_progress").add("idempotency_key_reused")
  return impossible
}

/** Codes that the endpoint declares itself, which remain in any case. */
const ownCodes = (endpoint: HttpApiEndpoint.Top): ReadonlySet<string | undefined> =>
  new Set([
    ...[...endpoint.error].map(({ ast }) => SchemaAST.resolveIdentifier(ast)),
    ...(Context.get(endpoint.annotations, ShowsSecret) ? ["conflict"] : []),
  ])

const codeOf = (ref: string) => ref.replace("#/components/schemas/", "").replace(/Encoded$/, "")

const refsOf = (schema: Json): ReadonlyArray<string> =>
  schema["$ref"] === undefined ? (schema["anyOf"] ?? []).flatMap(refsOf) : [schema["$ref"]]

const exampleOf = (code: Code) => ({
  type: `/problems/${code}`,
  title: table[code].title,
  status: table[code].status,
  detail: table[code].meaning,
  code,
  agent_hint: table[code].agent_hint,
  instance: "req_01kjr8xr3v7k2t9m4q6w8y0zab",
  doc_url: `https://api.example/problems/${code}`,
})

/** Removes impossible problems from the operation's responses, and describes the others. */
export const narrow = (operation: Json, endpoint: HttpApiEndpoint.Top, method: string): void => {
  const own = ownCodes(endpoint)
  const impossible = cannotCome(operation, policyOf(endpoint), scopeOf(endpoint), method)
  for (const [status, response] of Object.entries<Json>(operation["responses"])) {
    const problem = response["content"]?.["application/problem+json"]
    if (problem === undefined) continue
    const left = refsOf(problem.schema).filter((ref) => own.has(codeOf(ref)) || !impossible.has(codeOf(ref)))
    if (left.length === 0) {
      delete operation["responses"][status]
      continue
    }
    const codes = left.map((ref) => codeOf(ref) as Code)
    response["description"] = codes.map((code) => table[code].title).join("; or: ")
    problem.schema = left.length === 1 ? { $ref: left[0] } : { anyOf: left.map(($ref) => ({ $ref })) }
    problem.examples = Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }]))
  }
}
