/** The problem of a failed request: title, detail, next step and request id. */
import type { ComponentChildren } from "preact"
import { Refused, Unreachable } from "../client/Client.ts"
import { Button } from "./Button.tsx"
import { CopyButton } from "./Copy.tsx"
import { say } from "./texts.ts"
import { titleOf } from "./problems.ts"

interface ProblemProps {
  readonly failure: Error | undefined
  readonly onRetry?: () => void
  readonly children?: ComponentChildren
}

export const ProblemNote = ({ failure, onRetry, children }: ProblemProps) => {
  if (failure === undefined) return null
  const problem = failure instanceof Refused ? failure.problem : undefined
  const seconds = problem?.retry_after_seconds
  return (
    <div class="note" data-tone="bad" role="alert">
      <strong>
        {problem === undefined ? say(failure instanceof Unreachable ? "unreachable" : "broken") : titleOf(problem)}
      </strong>
      {problem === undefined ? (
        <p>{failure instanceof Unreachable ? say("unreachable_why") : failure.message}</p>
      ) : (
        <>
          <p>{problem.detail}</p>
          <p class="muted small">
            {problem.agent_hint === "wait" && seconds !== undefined
              ? say("wait_seconds", { count: seconds })
              : say(problem.agent_hint)}{" "}
            <a href={`/problems/${problem.code}`} target="_blank" rel="noopener">
              {say("what_it_means")}
            </a>
          </p>
        </>
      )}
      {children}
      <div class="bar">
        {onRetry === undefined ? null : (
          <Button small icon="again" onClick={onRetry}>
            {say("retry")}
          </Button>
        )}
        {problem === undefined ? null : (
          <span class="bar small muted">
            {say("request")} <code>{problem.instance}</code>
            <CopyButton value={problem.instance} what={problem.instance} />
          </span>
        )}
      </div>
    </div>
  )
}
