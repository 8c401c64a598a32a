/** The way in: an address, and at the first contact the Terms. The link that is mailed opens the session. */
import { useState } from "preact/hooks"
import { useAct } from "../client/Acts.ts"
import { type Answer, call } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { place } from "../router/Router.ts"
import { language, languages, speak } from "../texts/Texts.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Check, Form, TextField, wrongAt } from "../ui/Field.tsx"
import { Note, Page } from "../ui/Page.tsx"
import { ProblemNote } from "../ui/Problem.tsx"
import { keepReturn } from "../client/Return.ts"
import { say } from "./texts.ts"

const names = { en: "English", de: "Deutsch", fr: "Français" } as const

const Languages = () => (
  <div class="bar" role="group" aria-label={names[language.value]}>
    {languages.map((one) => (
      <Button key={one} kind="plain" small lang={one} aria-pressed={one === language.value} onClick={() => speak(one)}>
        {names[one]}
      </Button>
    ))}
  </div>
)

const SignInPage = () => {
  const [email, setEmail] = useState("")
  const [accepted, setAccepted] = useState(false)
  const [invite, setInvite] = useState("")
  const [sent, setSent] = useState<Answer<"POST /api/auth/magic-link">>()
  const registration = useCall("GET /api/auth/registration").data?.state
  const act = useAct(async (act) => {
    keepReturn(place.peek().path + place.peek().search)
    setSent(
      await call(
        "POST /api/auth/magic-link",
        {
          body: {
            email: email.trim(),
            language: language.peek(),
            tos_accepted: accepted,
            ...(invite.trim() === "" ? {} : { invite_code: invite.trim() }),
          },
        },
        { act },
      ),
    )
  })
  return (
    <main class="plain-page">
      <div class="way-in">
        <div class="bar spread">
          <a class="brand" href="/">
            <img src="/icon.svg" alt="" width="22" height="22" />
            Agent Identity
          </a>
          <Languages />
        </div>
        {sent === undefined ? (
          <Page title={say("heading")} lead={say("lead")}>
            {isSecureContext ? null : <Note tone="warn">{say("insecure")}</Note>}
            {registration === "closed" ? <Note>{say("closed")}</Note> : null}
            <Form onDone={() => void act.run()}>
              <TextField
                label={say("email")}
                type="email"
                name="email"
                autocomplete="email"
                required
                autofocus
                value={email}
                onValue={setEmail}
                wrong={wrongAt(act.failure, "/email")}
              />
              {registration === "invite" ? (
                <TextField
                  label={say("invite")}
                  hint={say("invite_hint")}
                  optional
                  value={invite}
                  onValue={setInvite}
                />
              ) : null}
              <Check checked={accepted} onValue={setAccepted} name="terms">
                {say("terms_before")}{" "}
                <a class="inline" href="/terms" target="_blank" rel="noopener">
                  {say("terms")}
                </a>{" "}
                {say("terms_after")}
              </Check>
              <ProblemNote failure={act.failure} />
              <div class="actions">
                <Button type="submit" kind="primary" busy={act.busy}>
                  {say("send")}
                </Button>
              </div>
            </Form>
          </Page>
        ) : (
          <Page title={say("sent")} lead={say("sent_to", { email: email.trim() })}>
            <p class="muted">{say("sent_here")}</p>
            <div class="bar">
              {sent.dev_magic_link === null ? null : (
                <ButtonLink kind="primary" href={sent.dev_magic_link}>
                  {say("dev")}
                </ButtonLink>
              )}
              <Button onClick={() => setSent(undefined)}>{say("other")}</Button>
            </div>
          </Page>
        )}
      </div>
    </main>
  )
}

export default SignInPage
