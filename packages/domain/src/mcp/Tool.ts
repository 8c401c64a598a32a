/**
 * Which endpoints are tools of the MCP server (interface.md "MCP server"). A tool's arguments are the endpoint's path, query
 * and body members, and its result is the endpoint's answer, so this annotation adds only what the endpoint does not say.
 */
import { Context } from "effect"

export type ToolEffect = "read" | "write" | "idempotent_write" | "destructive"

export interface ToolInfo {
  readonly name: string
  readonly effect: ToolEffect
  /** Reaches beyond the service. */
  readonly external?: boolean
  /** Guidance for models beyond the endpoint's summary. */
  readonly advice?: string
  /** Arguments that a model must give, though the endpoint can do without them. */
  readonly requires?: ReadonlyArray<string>
  /** Arguments that are secret: a command line takes them from its standard input only. */
  readonly secret?: ReadonlyArray<string>
  /** Members of the result that people outside wrote; a result marks them as untrusted. */
  readonly untrusted?: ReadonlyArray<string>
  /** Members of each entry that a terminal shows as columns; without them, the first plain ones. */
  readonly columns?: ReadonlyArray<string>
}

export class Tool extends Context.Service<Tool, ToolInfo>()("@svc/domain/mcp/Tool") {}
