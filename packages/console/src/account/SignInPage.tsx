/** Sign-in and registration: sends a sign-in link by email, and asks new accounts to accept the Terms of Service. */
import { useState } from "preact/hooks"
import { type Answer, call } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { place } from "../router/Router.ts"
import { language, languages, speak } from "../texts/Texts.ts"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Check, TextField } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Note, Page } from "../ui/Page.tsx"
import { keepReturn } from "../client/Session.ts"
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
  const [sent, setSent] = useState<Answer<"POST /api/auth/magic-link">>()
  const registration = useCall("GET /api/auth/registration").data?.state
  const { values, field, check, command } = useForm(
    { email: "", accepted: false, invite: "" },
    async (key, values) => {
      keepReturn(place.peek().path + place.peek().search)
      const invite = values.invite.trim()
      const body = {
        email: values.email.trim(),
        language: language.peek(),
        tos_accepted: values.accepted,
        ...(invite === "" ? {} : { invite_code: invite }),
      }
      setSent(await call("POST /api/auth/magic-link", { body }, { key }))
    },
    "none",
  )
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
            <CommandForm command={command} doing={say("send")}>
              <TextField
                label={say("email")}
                type="email"
                name="email"
                autocomplete="email"
                required
                autofocus
                {...field("email")}
              />
              {registration === "invite" ? (
                <TextField
                  label={say("invite")}
                  hint={say("invite_hint")}
                  optional
                  {...field("invite", "/invite_code")}
                />
              ) : null}
              <Check {...check("accepted")} name="terms">
                {say("terms_before")}{" "}
                <a class="inline" href="/terms" target="_blank" rel="noopener">
                  {say("terms")}
                </a>{" "}
                {say("terms_after")}
              </Check>
            </CommandForm>
          </Page>
        ) : (
          <Page title={say("sent")} lead={say("sent_to", { email: values.email.trim() })}>
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
