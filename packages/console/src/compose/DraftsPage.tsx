/** The drafts of people and agents, the most recently changed first. */
import { mailPath } from "../router/Paths.ts"
import { useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { type Answer, call } from "../client/Client.ts"
import { unsavedWith } from "../client/Unsaved.ts"
import { useList } from "../client/Lists.ts"
import { outdated } from "../client/Queries.ts"
import { IdentityFrame } from "../frame/IdentityFrame.tsx"
import { MailActions, MailNav } from "../mail/MailNav.tsx"
import { Button } from "../ui/Button.tsx"
import { Confirm } from "../ui/Dialog.tsx"
import { Icon } from "../ui/Icon.tsx"
import { Loaded, More } from "../ui/Loaded.tsx"
import { Empty } from "../ui/Page.tsx"
import { Time } from "../ui/Time.tsx"
import { tell } from "../ui/Toast.tsx"
import type { UnsavedDraft } from "./draft.ts"
import { say } from "./texts.ts"

/** Messages that the service does not have yet. */
const Unsaved = ({ handle }: { readonly handle: string }) => {
  const unsaved = unsavedWith<UnsavedDraft>(`compose:${handle}:`)
  return unsaved.length === 0 ? null : (
    <section class="stack" aria-label={say("unsaved")}>
      <h2>{say("unsaved")}</h2>
      <ul class="box rows mails" data-list>
        {unsaved.map(([search, { mail }]) => (
          <li key={search}>
            <span class="sender one-line">
              <bdi>{(mail.to ?? []).slice(0, 3).join(", ") || say("nobody")}</bdi>
            </span>
            <a class="whole one-line" href={`/console${mailPath(handle)}/compose?${search}`}>
              <bdi class="subject">{mail.subject || say("no_subject")}</bdi>
              <bdi class="snippet">{(mail.text ?? "").slice(0, 200)}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

type Draft = Answer<"GET /api/identities/:handle/drafts">["drafts"][number]

const subjectOf = ({ subject }: Draft) => (subject === "" ? say("no_subject") : subject)

/** Drafts raise no Events, so the list is polled. */
const lookAgainMillis = 15_000

const Drafts = ({ handle }: { readonly handle: string }) => {
  const drafts = useList(
    "GET /api/identities/:handle/drafts",
    { params: { handle }, query: { limit: 100 } },
    { every: () => lookAgainMillis },
  )
  const [removing, setRemoving] = useState<Draft>()
  const remove = useCommand(async () => {
    if (removing === undefined) return
    await call("DELETE /api/identities/:handle/drafts/:id", { params: { handle, id: removing.id } })
    await outdated(["/api/identities/:handle/drafts"], handle)
  })
  return (
    <>
      <Loaded of={drafts} lines={6}>
        {({ pages }) => {
          const all = pages
            .flatMap((page) => page.drafts)
            .toSorted((one, other) => other.updated_at.localeCompare(one.updated_at))
          return all.length === 0 ? (
            <div class="box">
              <Empty icon="mail" title={say("no_drafts")}>
                {say("no_drafts_why")}
              </Empty>
            </div>
          ) : (
            <ul class="box rows mails" data-list>
              {all.map((draft) => (
                <li key={draft.id}>
                  <span class="sender one-line">
                    {draft.to.length === 0 ? (
                      <span class="muted">{say("nobody")}</span>
                    ) : (
                      <bdi>{draft.to.slice(0, 3).join(", ")}</bdi>
                    )}
                  </span>
                  <span class="time muted small number">
                    <Time at={draft.updated_at} form="moment" />
                  </span>
                  <a class="whole one-line" href={`/console${mailPath(handle)}/compose?draft=${draft.id}`}>
                    <bdi class="subject">{subjectOf(draft)}</bdi>
                    <bdi class="snippet">{draft.snippet}</bdi>
                  </a>
                  <span class="marks">
                    {draft.attachments.length === 0 ? null : <Icon name="clip" />}
                    <span class="above">
                      <Button
                        small
                        kind="plain"
                        icon="trash"
                        aria-label={say("discard_one", { subject: subjectOf(draft) })}
                        onClick={() => setRemoving(draft)}
                      />
                    </span>
                  </span>
                </li>
              ))}
            </ul>
          )
        }}
      </Loaded>
      <More of={drafts} />
      {removing === undefined ? null : (
        <Confirm
          title={say("discard_title")}
          doing={say("discard")}
          command={remove}
          onClose={() => setRemoving(undefined)}
          onDone={() => tell(say("discarded"))}
        >
          <p>{say("discard_why")}</p>
        </Confirm>
      )}
    </>
  )
}

const DraftsPage = ({ handle }: { readonly handle: string }) => (
  <IdentityFrame handle={handle} part="mail" wide actions={<MailActions handle={handle} />}>
    {({ handle }) => (
      <div class="stack">
        <MailNav handle={handle} />
        <Unsaved handle={handle} />
        <Drafts handle={handle} />
      </div>
    )}
  </IdentityFrame>
)

export default DraftsPage
