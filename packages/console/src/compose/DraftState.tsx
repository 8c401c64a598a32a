/** What the service has of a draft: saved, being uploaded, not saved, or changed elsewhere. */
import { useCommand } from "../client/Commands.ts"
import { Button } from "../ui/Button.tsx"
import { Note } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { Time } from "../ui/Time.tsx"
import type { DraftKeeper, Mail } from "./draft.ts"
import { say } from "./texts.ts"

export const Kept = ({ of }: { readonly of: DraftKeeper }) => {
  const state = of.state.value
  if (state.is === "failed")
    return (
      <div class="grow">
        <ProblemNote failure={state.failure} onRetry={() => void of.save()} />
        <p class="muted small">{say("kept_here")}</p>
      </div>
    )
  if (state.is === "overtaken") return null
  return (
    <span class="muted small" role="status">
      {state.is === "saved" ? (
        <>
          {say("kept")} <Time at={state.at} />
        </>
      ) : state.is === "new" ? null : (
        say("keeping")
      )}
    </span>
  )
}

export const Overtaken = ({ of, onReload }: { readonly of: DraftKeeper; readonly onReload: () => void }) => {
  const overrule = useCommand(() => of.overrule())
  if (of.state.value.is !== "overtaken") return null
  return (
    <Note tone="warn">
      <strong>{say("overtaken")}</strong>
      <p>{say("overtaken_why")}</p>
      <div class="bar">
        <Button small command={overrule}>
          {say("keep_mine")}
        </Button>
        <Button small onClick={onReload}>
          {say("take_theirs")}
        </Button>
      </div>
      <ProblemNote failure={overrule.failure} />
    </Note>
  )
}

type Attachments = Mail["attachments"]

/** The progress of an upload, which leaves out the new attachments if it is cancelled. */
export const Upload = ({
  of,
  onCancel,
}: {
  readonly of: DraftKeeper
  readonly onCancel: (kept: Attachments) => void
}) => {
  const share = of.sent.value
  // A request that was sent completely may have had its effect.
  return share === undefined || share >= 1 ? null : (
    <div class="bar small muted">
      <label class="bar">
        {say("uploading")}
        <progress value={share} max={1} />
      </label>
      <Button small onClick={() => onCancel(of.cancel())}>
        {say("cancel_upload")}
      </Button>
    </div>
  )
}
