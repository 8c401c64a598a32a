/** The recipients that mail cannot be sent to, with the reason and a button that allows them. */
import { useCommand } from "../client/Commands.ts"
import { call } from "../client/Client.ts"
import { outdated } from "../client/Queries.ts"
import { Button } from "../ui/Button.tsx"
import { Note } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { tell } from "../ui/Toast.tsx"
import { isRefused, type Judged } from "./recipients.ts"
import { say } from "./texts.ts"

interface RefusalsProps {
  readonly handle: string
  readonly judged: ReadonlyArray<Judged>
}

/** The button that allows a recipient or lifts its suppression. */
const Letting = ({ handle, of: { address, is } }: { readonly handle: string; readonly of: Judged }) => {
  const isSuppressed = is === "suppressed"
  const command = useCommand(async (key) => {
    await (isSuppressed
      ? call("DELETE /api/identities/:handle/allowed-recipients/:address/suppression", { params: { handle, address } })
      : call("POST /api/identities/:handle/allowed-recipients", { params: { handle }, body: { address } }, { key }))
    tell(say("allowed_now", { address }))
    await outdated(["/api/identities/:handle/allowed-recipients"], handle)
  })
  return (
    <>
      <Button
        small
        icon="check"
        command={command}
        aria-label={say(isSuppressed ? "lift_one" : "allow_one", { address })}
      >
        {say(isSuppressed ? "lift" : "allow")}
      </Button>
      <ProblemNote failure={command.failure} />
    </>
  )
}

export const Refusals = ({ handle, judged }: RefusalsProps) => {
  const refused = judged.filter(isRefused)
  return (
    <div role="status" class="stack refusals">
      {refused.length === 0 ? null : (
        <Note tone="warn">
          <strong>{say("refused_title")}</strong>
          <ul class="stack">
            {refused.map((one) => (
              <li key={one.address} class="bar spread">
                <span class="grow">
                  <bdi class="mono">{one.address}</bdi> <span>{say(`is_${one.is}`)}</span>
                  {one.suppressed == null || one.suppressed.reason === "" ? null : (
                    <>
                      {": "}
                      <bdi class="muted">{one.suppressed.reason.slice(0, 300)}</bdi>
                    </>
                  )}
                </span>
                {one.is === "wrong" ? null : <Letting handle={handle} of={one} />}
              </li>
            ))}
          </ul>
        </Note>
      )}
    </div>
  )
}
