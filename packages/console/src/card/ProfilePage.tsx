/** The editor of the agent's card, with a preview of the public profile. */
import { type Answer, call, type Input } from "../client/Client.ts"
import { outdated, useCall } from "../client/Queries.ts"
import { type Identity, IdentityFrame } from "../frame/IdentityFrame.tsx"
import { Button, ButtonLink } from "../ui/Button.tsx"
import { Code } from "../ui/Copy.tsx"
import { TextArea, TextField } from "../ui/Field.tsx"
import { CommandForm, useForm } from "../ui/Form.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Section } from "../ui/Page.tsx"
import { tell } from "../ui/Toast.tsx"
import { say } from "./texts.ts"
import "./card.css"

type Card = Answer<"GET /api/identities/:handle/card">
type Patch = NonNullable<Input<"PATCH /api/identities/:handle/card">["body"]>

interface Skill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: string
  /** Members that the form does not show; they are sent back unchanged. */
  readonly rest: Card["skills"][number] | undefined
}

interface Draft {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly documentation: string
  readonly icon: string
  readonly organization: string
  readonly website: string
  readonly skills: ReadonlyArray<Skill>
}

const draftOf = (card: Card): Draft => ({
  name: card.name,
  description: card.description,
  version: card.version,
  documentation: card.documentation_url ?? "",
  icon: card.icon_url ?? "",
  organization: card.provider?.organization ?? "",
  website: card.provider?.url ?? "",
  skills: card.skills.map((skill) => ({
    id: skill.id,
    name: skill.name,
    description: skill.description,
    tags: (skill.tags ?? []).join(", "),
    rest: skill,
  })),
})

const orNull = (text: string) => (text.trim() === "" ? null : text.trim())

const patchOf = (draft: Draft): Patch => ({
  name: draft.name.trim(),
  description: draft.description.trim(),
  version: draft.version.trim(),
  documentation_url: orNull(draft.documentation),
  icon_url: orNull(draft.icon),
  provider:
    orNull(draft.organization) === null && orNull(draft.website) === null
      ? null
      : { organization: draft.organization.trim(), url: draft.website.trim() },
  skills: draft.skills.map(({ id, name, description, tags, rest }) => ({
    ...rest,
    id: id.trim(),
    name: name.trim(),
    description: description.trim(),
    tags: tags
      .split(",")
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ""),
  })),
})

const Preview = ({ draft, handle }: { readonly draft: Draft; readonly handle: string }) => (
  <div class="box padded preview">
    <div class="bar">
      <span class="avatar" aria-hidden="true">
        {[...draft.name][0]?.toUpperCase() ?? ""}
      </span>
      <div class="grow">
        <strong>
          <bdi>{draft.name}</bdi>
        </strong>
        <div class="muted small">
          @{handle} <span class="tag">{say("agent")}</span>
        </div>
      </div>
    </div>
    {draft.description === "" ? null : (
      <p dir="auto" class="described">
        {draft.description}
      </p>
    )}
    {draft.skills.length === 0 ? null : (
      <ul class="stack">
        {draft.skills.map((skill, index) => (
          <li key={index}>
            <strong>
              <bdi>{skill.name}</bdi>
            </strong>
            <p class="muted" dir="auto">
              {skill.description}
            </p>
          </li>
        ))}
      </ul>
    )}
  </div>
)

const Editor = ({ identity, card }: { readonly identity: Identity; readonly card: Card }) => {
  const { handle } = identity
  const form = useForm<Draft>(
    draftOf(card),
    async (_, draft) => {
      await call("PATCH /api/identities/:handle/card", { params: { handle }, body: patchOf(draft) })
      tell(say("saved"))
      await outdated(["/api/identities/:handle/card"], handle)
    },
    { name: `card:${handle}`, secrets: [] },
  )
  const { values: draft, set, field } = form
  const skillField = (at: number, name: Exclude<keyof Skill, "rest">) => ({
    value: draft.skills[at]![name],
    onValue: (value: string) =>
      set({ skills: draft.skills.map((skill, index) => (index === at ? { ...skill, [name]: value } : skill)) }),
    wrong: form.wrong(`/skills/${at}/${name}`),
  })
  return (
    <div class="two">
      <Section title={say("edit")}>
        <CommandForm command={form.command} doing={say("save")}>
          <TextField label={say("name")} required maxLength={200} {...field("name")} />
          <TextArea label={say("description")} maxLength={2000} {...field("description")} />
          <TextField label={say("version")} required maxLength={64} {...field("version")} />
          <TextField
            label={say("documentation")}
            type="url"
            optional
            hint={say("https")}
            {...field("documentation", "/documentation_url")}
          />
          <TextField label={say("icon")} type="url" optional hint={say("https")} {...field("icon", "/icon_url")} />
          <TextField label={say("operator")} optional {...field("organization", "/provider/organization")} />
          <TextField label={say("operator_url")} type="url" optional {...field("website", "/provider/url")} />
          <h2>{say("skills")}</h2>
          <p class="muted small">{say("skills_why")}</p>
          {draft.skills.map((_, index) => (
            <fieldset key={index} class="box padded stack skill">
              <legend class="hidden-text">{say("skill", { number: index + 1 })}</legend>
              <TextField label={say("skill_id")} required maxLength={100} {...skillField(index, "id")} />
              <TextField label={say("skill_name")} required maxLength={200} {...skillField(index, "name")} />
              <TextArea
                label={say("skill_description")}
                required
                rows={2}
                maxLength={2000}
                {...skillField(index, "description")}
              />
              <TextField label={say("skill_tags")} optional {...skillField(index, "tags")} />
              <div class="bar">
                <Button
                  small
                  kind="danger"
                  icon="trash"
                  onClick={() => set({ skills: draft.skills.filter((_, other) => other !== index) })}
                >
                  {say("drop_skill")}
                </Button>
              </div>
            </fieldset>
          ))}
          <div class="bar">
            <Button
              icon="plus"
              onClick={() =>
                set({
                  skills: [
                    ...draft.skills,
                    { id: `skill-${draft.skills.length + 1}`, name: "", description: "", tags: "", rest: undefined },
                  ],
                })
              }
            >
              {say("add_skill")}
            </Button>
          </div>
        </CommandForm>
      </Section>
      <div class="stack-loose">
        <Section
          title={say("seen")}
          actions={
            <ButtonLink small icon="out" href={identity.profile_url} target="_blank" rel="noopener">
              {say("open")}
            </ButtonLink>
          }
        >
          <Preview draft={draft} handle={handle} />
        </Section>
        <Section title={say("json")}>
          <Code text={JSON.stringify(card.card, undefined, 2)} what={say("json")} />
        </Section>
      </div>
    </div>
  )
}

const ProfilePage = ({ handle }: { readonly handle: string }) => {
  const card = useCall("GET /api/identities/:handle/card", { params: { handle } })
  return (
    <IdentityFrame handle={handle} part="profile">
      {(identity) => (
        <Loaded of={card} lines={8}>
          {(card) => <Editor key={card.updated_at} identity={identity} card={card} />}
        </Loaded>
      )}
    </IdentityFrame>
  )
}

export default ProfilePage
