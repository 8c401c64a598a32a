/**
 * Which endpoints are tools of the MCP server (interface.md "MCP server"). The tool's arguments are the endpoint's path,
 * query and body members, so nothing but this annotation is said twice.
 */
import { Context } from "effect"

export type ToolEffect = "read" | "write" | "idempotent_write" | "destructive"

export interface ToolInfo {
  readonly name: string
  readonly effect: ToolEffect
  /** Reaches beyond the service. */
  readonly external?: boolean
  /** What a model should know beyond the endpoint's summary: what to do next, what to mind. */
  readonly advice?: string
  /** Arguments that a model must give, though the endpoint can do without them. */
  readonly requires?: ReadonlyArray<string>
  /** Arguments that are secret: a command line takes them from its standard input only. */
  readonly secret?: ReadonlyArray<string>
}

export class Tool extends Context.Service<Tool, ToolInfo>()("@svc/domain/mcp/Tool") {}
