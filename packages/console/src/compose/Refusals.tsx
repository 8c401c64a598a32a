/** Who of the recipients may not be written to, why, and what lets them. Who is signed in here may allow anybody. */
import { useAct } from "../client/Acts.ts"
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

export const Refusals = ({ handle, judged }: RefusalsProps) => {
  const renew = () => outdated(["/api/identities/:handle/allowed-recipients"], handle)
  const allow = useAct(async (act, address: string) => {
    await call("POST /api/identities/:handle/allowed-recipients", { params: { handle }, body: { address } }, { act })
    tell(say("allowed_now", { address }))
    await renew()
  })
  const lift = useAct(async (_, address: string) => {
    await call("DELETE /api/identities/:handle/allowed-recipients/:address/suppression", {
      params: { handle, address },
    })
    tell(say("allowed_now", { address }))
    await renew()
  })
  const refused = judged.filter(isRefused)
  return (
    <div role="status" class="stack refusals">
      {refused.length === 0 ? null : (
        <Note tone="warn">
          <strong>{say("refused_title")}</strong>
          <ul class="stack">
            {refused.map(({ address, is, suppressed }) => (
              <li key={address} class="bar spread">
                <span class="grow">
                  <bdi class="mono">{address}</bdi> <span>{say(`is_${is}`)}</span>
                  {suppressed == null || suppressed.reason === "" ? null : (
                    <>
                      {": "}
                      <bdi class="muted">{suppressed.reason.slice(0, 300)}</bdi>
                    </>
                  )}
                </span>
                {is === "wrong" ? null : (
                  <Button
                    small
                    icon="check"
                    busy={is === "suppressed" ? lift.busy : allow.busy}
                    aria-label={say(is === "suppressed" ? "lift_one" : "allow_one", { address })}
                    onClick={() => void (is === "suppressed" ? lift : allow).run(address)}
                  >
                    {say(is === "suppressed" ? "lift" : "allow")}
                  </Button>
                )}
              </li>
            ))}
          </ul>
        </Note>
      )}
      <ProblemNote failure={allow.failure ?? lift.failure} />
    </div>
  )
}
