/** Composes a new message, a reply, a forwarded message, or continues a draft. */
import { useQuery } from "@tanstack/preact-query"
import { useRef, useState } from "preact/hooks"
import { mailPath } from "../router/Paths.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { go, place } from "../router/Router.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty } from "../ui/Page.tsx"
import { unsavedName } from "./draft.ts"
import { begin, type Beginning } from "./initial.ts"
import { Composer } from "./Composer.tsx"
import { say } from "./texts.ts"

const Begun = ({ handle, email, search }: { handle: string; email: string; search: string }) => {
  const [again, setAgain] = useState(0)
  const made = useRef<string>(undefined)
  const query = new URLSearchParams(made.current === undefined ? search : { draft: made.current })
  // Loaded once: the composer owns the content from then on.
  const beginning = useQuery<Beginning>({
    queryKey: ["compose", handle, search, again],
    queryFn: () => begin(handle, email, query),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  return (
    <Loaded of={beginning} lines={8} gone={<Empty icon="mail" title={say("draft_gone")} />}>
      {(beginning) => (
        <>
          <h2>{say(`title_${beginning.kind}`)}</h2>
          <Composer
            key={again}
            handle={handle}
            email={email}
            beginning={beginning}
            name={unsavedName(handle, query)}
            onMade={(id) => {
              made.current = id
              ownAddress.current = `?draft=${id}`
              if (place.peek().path === `${mailPath(handle)}/compose`)
                go(`${mailPath(handle)}/compose?draft=${id}`, "replace")
            }}
            onReload={() => setAgain(again + 1)}
          />
        </>
      )}
    </Loaded>
  )
}

/** The query that the composer set when its draft was created, which must not open a new composer. */
const ownAddress: { current: string | undefined } = { current: undefined }

const ComposePage = ({ handle }: { readonly handle: string }) => {
  const shown = useRef(place.peek().search)
  const now = place.value
  if (now.search !== shown.current && now.search !== ownAddress.current) shown.current = now.search
  return (
    <IdentityFrame
      handle={handle}
      part="mail"
      actions={
        <ButtonLink icon="left" href={`/console${mailPath(handle)}`}>
          {say("back")}
        </ButtonLink>
      }
    >
      {({ handle, email }) => (
        <div class="stack">
          <Begun key={shown.current} handle={handle} email={email} search={shown.current} />
        </div>
      )}
    </IdentityFrame>
  )
}

export default ComposePage
