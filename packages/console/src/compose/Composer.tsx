/** The message editor: saves a draft while a person types, and checks recipients before sending. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { useCommand } from "../client/Commands.ts"
import { mailPath } from "../router/Paths.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { unsavedInput } from "../client/Unsaved.ts"
import { go, guardWhile } from "../router/Router.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { ConfirmButton } from "../ui/Dialog.tsx"
import { Check, TextArea, TextField } from "../ui/Field.tsx"
import { Form, RestoredNote, wrongAt } from "../ui/Form.tsx"
import { Note } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { tell } from "../ui/Toast.tsx"
import type { Beginning } from "./initial.ts"
import { Kept, Overtaken, Upload } from "./DraftState.tsx"
import { keepDraft, type Mail, type UnsavedDraft } from "./draft.ts"
import { splitQuote } from "./answering.ts"
import { useDelayed } from "./delayed.ts"
import { Files, useFiles } from "./Files.tsx"
import { PeopleField } from "./PeopleField.tsx"
import { useJudged, useKnown } from "./recipients.ts"
import { Refusals } from "./Refusals.tsx"
import { say } from "./texts.ts"
import "./compose.css"

/** Says that the message is not sent yet. Screen readers hear it once, not every second. */
const Sending = (props: { readonly seconds: number; readonly onUndo: () => void; readonly onNow: () => void }) => (
  <div class="bar" role="group" aria-label={say("sending_soon")}>
    <span class="hidden-text" role="status">
      {say("sending_soon")}
    </span>
    <span class="number" aria-hidden="true">
      {say("sending_in", { count: props.seconds })}
    </span>
    <Button kind="primary" autofocus onClick={props.onUndo}>
      {say("undo")}
    </Button>
    <Button onClick={props.onNow}>{say("send_now")}</Button>
  </div>
)

const Stopped = ({ handle }: { readonly handle: string }) => {
  const mail = useCall("GET /api/identities/:handle/mail", { params: { handle } })
  if (mail.data?.outgoing !== "stopped") return null
  return (
    <Note tone="bad">
      <div class="bar spread">
        <span class="grow">
          <strong>{say("stopped")}</strong> {say("stopped_why")}
          {mail.data.reason === null ? null : (
            <>
              {" "}
              <bdi class="muted">{mail.data.reason}</bdi>
            </>
          )}
        </span>
        <ButtonLink small href={`/console${mailPath(handle)}/settings`}>
          {say("to_settings")}
        </ButtonLink>
      </div>
    </Note>
  )
}

const formatKey = "svc-format"
const isFormattedByDefault = () => {
  try {
    return localStorage.getItem(formatKey) === "on"
  } catch {
    return false
  }
}
const formatByDefault = (is: boolean) => {
  try {
    localStorage.setItem(formatKey, is ? "on" : "off")
  } catch {
    // Storage is not available: the choice is for this message.
  }
}

interface ComposerProps {
  readonly handle: string
  readonly email: string
  readonly beginning: Beginning
  /** The name of its entry in the browser's storage. */
  readonly name: string
  /** Called when the draft was created, so that the page's address can name it. */
  readonly onMade: (id: string) => void
  readonly onReload: () => void
}

export const Composer = ({ handle, email, beginning, name, onMade, onReload }: ComposerProps) => {
  const [mail, setMail] = useState<Mail>(beginning.mail)
  const [isMore, setMore] = useState((mail.cc ?? []).length + (mail.bcc ?? []).length > 0)
  const { draft } = beginning
  const isRestored = beginning.missing !== undefined
  const store = useMemo(() => unsavedInput<UnsavedDraft>(name), [])
  const keeper = useMemo(
    () =>
      keepDraft(
        handle,
        draft === undefined ? undefined : { ...draft, mail: isRestored ? undefined : beginning.mail },
        onMade,
        store,
      ),
    [],
  )
  const { to = [], cc = [], bcc = [], text = "", subject = "", attachments = [] } = mail
  const judged = useJudged(handle, [...new Set([...to, ...cc, ...bcc])])
  const known = useKnown(handle, email)
  const disclosure = useCall("GET /api/identities/:handle/ai-disclosure", { params: { handle } })
  const isStopped = useCall("GET /api/identities/:handle/mail", { params: { handle } }).data?.outgoing === "stopped"
  /** The quote is folded until it is shown; it is always below what is written. */
  const [isFolded, setFolded] = useState(true)
  const { own, quoted } = isFolded ? splitQuote(text) : { own: text, quoted: "" }
  /** The latest content, also for a file that was read while the text changed. */
  const current = useRef(mail)
  const change = (part: Partial<Mail>) => {
    const next = { ...current.current, ...part }
    current.current = next
    setMail(next)
    keeper.change(next)
  }
  const [isFormatted, setFormatted] = useState(() => mail.html === undefined && isFormattedByDefault())
  const files = useFiles(
    attachments,
    (attachments) => change({ attachments }),
    // The message would be sent without a file that is still being read.
    () => waiting.cancel(),
  )
  useEffect(() => {
    // Saves pending changes when the page is left or hidden, because mobile browsers may end hidden pages.
    const hide = () => {
      if (document.visibilityState === "hidden") keeper.hide()
    }
    document.addEventListener("visibilitychange", hide)
    const free = guardWhile(
      () => !keeper.isKept(),
      // Leaving the page saves the draft; only a draft that cannot be saved needs the question.
      () => (["failed", "overtaken"].includes(keeper.state.peek().is) ? say("leave") : undefined),
    )
    if (isRestored) {
      store.adopt()
      keeper.change(mail)
    }
    return () => {
      free()
      document.removeEventListener("visibilitychange", hide)
      keeper.leave()
    }
  }, [])

  const again = () => {
    keeper.end()
    onReload()
  }
  // A file that is still being read would be missing in what is sent.
  const isRead = files.reading === undefined
  const isReady = to.length > 0 && judged.every(({ is }) => is === "allowed") && !isStopped && isRead
  const send = useCommand(async (key) => {
    // The formatting is loaded when it is first needed.
    const html = isFormatted ? (await import("./formatting.ts")).htmlOf(text) : undefined
    const sent = await keeper.send(html === undefined ? mail : { ...mail, html }, key)
    if (sent === undefined) return
    tell(say(sent.status === "queued" ? "queued" : "awaiting"))
    go(`${mailPath(handle)}/${sent.id}`, "replace")
    await outdated(
      ["drafts", "messages", "threads", "approvals"].map((part) => `/api/identities/:handle/${part}`),
      handle,
    )
  })
  const waiting = useDelayed(() => void send.run())
  const discard = useCommand(async () => {
    await keeper.remove()
    go(`${mailPath(handle)}/drafts`, "replace")
  })
  const people = (field: "to" | "cc" | "bcc", value: ReadonlyArray<string>, autofocus = false) => (
    <PeopleField
      label={say(field)}
      value={value}
      judged={judged}
      known={known}
      onValue={(next) => change({ [field]: next })}
      {...(autofocus && { autofocus })}
    />
  )
  return (
    <Form
      class="form composer"
      {...files.target}
      onDone={() => {
        if (isReady) waiting.start()
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        if (isReady) waiting.start()
      }}
    >
      <Stopped handle={handle} />
      <Overtaken of={keeper} onReload={again} />
      {isRestored ? (
        <RestoredNote {...(keeper.state.value.is !== "saved" && { onDiscard: again })}>
          {say("restored")}
          {beginning.missing!.length === 0 ? null : (
            <>
              {" "}
              {say("missing")} <bdi>{beginning.missing!.join(", ")}</bdi>
            </>
          )}
        </RestoredNote>
      ) : null}
      {beginning.leftOut.length === 0 ? null : (
        <Note tone="warn">
          {say("left_out")} <bdi>{beginning.leftOut.slice(0, 20).join(", ")}</bdi>
        </Note>
      )}
      <div>
        <div class="box sheet">
          <div class="people">
            <span class="label">{say("from")}</span>
            <bdi class="mono one-line grow">{email}</bdi>
            {isMore ? null : (
              <Button small kind="plain" onClick={() => setMore(true)}>
                {say("more_people")}
              </Button>
            )}
          </div>
          {people("to", to, beginning.kind === "new" || beginning.kind === "forward")}
          {isMore ? people("cc", cc) : null}
          {isMore ? people("bcc", bcc) : null}
        </div>
        <Refusals handle={handle} judged={judged} />
      </div>
      <TextField
        label={say("subject")}
        value={subject}
        onValue={(subject) => change({ subject })}
        maxLength={900}
        wrong={wrongAt(send.failure, "/subject")}
      />
      <div class="sheet-text">
        <TextArea
          label={say("text")}
          rows={12}
          value={own}
          onValue={(own) => change({ text: own + quoted })}
          maxLength={1_000_000}
          autofocus={beginning.kind === "reply"}
          wrong={wrongAt(send.failure, "/text")}
        />
        {quoted === "" ? null : (
          <div class="sheet-quote">
            <Button small kind="plain" icon="more" onClick={() => setFolded(false)}>
              {say("show_quote")}
            </Button>
          </div>
        )}
        {disclosure.data === undefined ? null : (
          <div class="sheet-disclosure">
            <p class="pre">{disclosure.data.text}</p>
            <p class="muted small">
              {say("disclosure_why")} <a href={`/console${mailPath(handle)}/settings`}>{say("disclosure_change")}</a>
            </p>
          </div>
        )}
      </div>
      {mail.html === undefined ? (
        <Check
          checked={isFormatted}
          onValue={(is) => {
            setFormatted(is)
            formatByDefault(is)
          }}
        >
          {say("format")} <span class="muted small">{say("format_why")}</span>
        </Check>
      ) : (
        <Note>
          <div class="bar spread">
            <span class="grow">{say("has_html")}</span>
            <Button
              small
              onClick={() => {
                const { html: _, ...rest } = mail
                current.current = rest
                setMail(rest)
                keeper.change(rest)
              }}
            >
              {say("drop_html")}
            </Button>
          </div>
        </Note>
      )}
      <Files of={files} />
      <Upload of={keeper} onCancel={(attachments = []) => change({ attachments })} />
      <ProblemNote failure={send.failure} />
      <div class="actions">
        {waiting.seconds === undefined ? (
          <Button kind="primary" type="submit" icon="send" busy={send.busy} disabled={!isReady}>
            {say("send")}
          </Button>
        ) : (
          <Sending seconds={waiting.seconds} onUndo={waiting.cancel} onNow={waiting.finish} />
        )}
        <ConfirmButton kind="danger" icon="trash" title={say("discard_title")} doing={say("discard")} command={discard}>
          <p>{say("discard_why")}</p>
        </ConfirmButton>
        <Kept of={keeper} />
      </div>
    </Form>
  )
}
