/** Confirms and revokes a credential. */
import { useCommand } from "../client/Commands.ts"
import { outdated } from "../client/Queries.ts"
import { Confirm } from "../ui/Dialog.tsx"
import { tell } from "../ui/Toast.tsx"

interface EndingProps {
  readonly title: string
  /** The consequences. */
  readonly why: string
  readonly doing: string
  readonly done: string
  readonly end: () => Promise<unknown>
  /** The list to refetch. */
  readonly list: string
  readonly onClose: () => void
}

export const Ending = ({ title, why, doing, done, end, list, onClose }: EndingProps) => {
  const command = useCommand(async () => {
    await end()
    void outdated([list])
  })
  return (
    <Confirm title={title} doing={doing} command={command} onClose={onClose} onDone={() => tell(done)}>
      <p>{why}</p>
    </Confirm>
  )
}
