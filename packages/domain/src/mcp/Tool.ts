/**
 * Marks endpoints that are tools of the MCP server (interface.md "MCP server"). Arguments are the endpoint's path,
 * query and body members, and the result is its response, so this annotation only adds what the endpoint does not
 * state.
 */
import { Context } from "effect"

export type ToolEffect = "read" | "write" | "idempotent_write" | "destructive"

export interface ToolInfo {
  readonly name: string
  readonly effect: ToolEffect
  /** The argument that selects this endpoint among those of the same tool, and its value here. */
  readonly choice?: { readonly argument: string; readonly value: string }
  /** Whether the tool reaches outside the service. */
  readonly external?: boolean
  /** Guidance for models in addition to the endpoint's summary. */
  readonly advice?: string
  /** Arguments that are required for models, although the endpoint has defaults. */
  readonly requires?: ReadonlyArray<string>
  /** Secret arguments; the command line reads them from standard input only. */
  readonly secret?: ReadonlyArray<string>
  /** Members of the result with content from outside, which the result marks as untrusted. */
  readonly untrusted?: ReadonlyArray<string>
  /** Members of each entry that a terminal shows as columns; defaults to the first simple members. */
  readonly columns?: ReadonlyArray<string>
}

export class Tool extends Context.Service<Tool, ToolInfo>()("@svc/domain/mcp/Tool") {}
