/** Every endpoint of the API with a well-formed request, derived from the API and the OpenAPI document. */
import { document } from "@svc/api/openapi/Document"
import { type EndpointPolicy, policyOf } from "@svc/domain/account/Policy"
import { Api } from "@svc/domain/Api"
import { SchemaAST } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"

export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  /** The required scope; undefined for public endpoints. */
  readonly access: Exclude<EndpointPolicy["scope"], "public"> | undefined
  readonly statuses: ReadonlySet<number>
  /** The codes of the problems that the endpoint itself declares. */
  readonly problems: ReadonlyArray<string>
  readonly endpoint: HttpApiEndpoint.Top
  /** A well-formed body; undefined if the endpoint takes none. */
  readonly body: any
}

const crockford = "01kjr8xr3v7k2t9m4q6w8y0zab"
const ids: Readonly<Record<string, string>> = {
  messages: `msg_${crockford}`,
  sending: `msg_${crockford}`,
  threads: `thr_${crockford}`,
  audit: `aud_${crockford}`,
  session: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10",
  webhooks: `wh_${crockford}`,
  events: `evt_${crockford}`,
  exports: `exp_${crockford}`,
  api_keys: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10",
  agent_sign_ins: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10",
  grants: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10",
}

/** Returns the path with its parameters; the ids in it do not exist. */
export const pathOf = (operation: Operation, handle: string): string =>
  operation.path
    .replace(":handle", handle)
    .replace(":id", ids[operation.id.split(".")[0]!] ?? crockford)
    .replace(":userCode", "BBBB-BBBB")
    .replace(":index", "0")
    .replace(":address", "nobody%40example.org")
    .replace(":platform", "bluesky")
    .replace(":name", "no.such.secret")
    // A short wait, since no message arrives.
    .replace(/\/messages\/wait$/, "$&?seconds=1")

export const operations: ReadonlyArray<Operation> = Object.entries(Api.groups).flatMap(([group, { endpoints }]) =>
  Object.entries(endpoints as Record<string, HttpApiEndpoint.Top>).map(([name, endpoint]): Operation => {
    const described = document["paths"][endpoint.path.replace(/:(\w+)/g, "{$1}")][endpoint.method.toLowerCase()]
    const { scope } = policyOf(endpoint)
    return {
      id: `${group}.${name}`,
      method: endpoint.method,
      path: endpoint.path,
      access: scope === "public" ? undefined : scope,
      statuses: new Set(Object.keys(described.responses).map(Number)),
      problems: [...endpoint.error].map(({ ast }) => String(SchemaAST.resolveIdentifier(ast))),
      endpoint,
      body: described.requestBody?.content?.["application/json"]?.example,
    }
  }),
)
