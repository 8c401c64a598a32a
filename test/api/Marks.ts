/** The declarations of endpoints besides their policy. A change here changes a promise of the API. */
import { Reveals, Issues, Unscoped } from "@svc/domain/account/EndpointScope"
import { AddressLimit, CallPolicy, Confidential, policyOf, ShowsSecret, Tagged } from "@svc/domain/account/Policy"
import { Tool } from "@svc/domain/mcp/Tool"
import { Context } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"

/** Returns the endpoints of each mark. */
export const marksOf = (
  endpoints: ReadonlyMap<string, HttpApiEndpoint.Top>,
): Readonly<Record<string, ReadonlyArray<string>>> => {
  const having = (say: (endpoint: HttpApiEndpoint.Top) => string | boolean | undefined) =>
    [...endpoints].flatMap(([id, endpoint]) => {
      const found = say(endpoint)
      return found === undefined || found === false ? [] : [found === true ? id : `${id} ${found}`]
    })
  return {
    confidential: having(({ annotations }) => Context.get(annotations, Confidential)),
    showsSecret: having(({ annotations }) => Context.get(annotations, ShowsSecret)),
    tagged: having(({ annotations }) => Context.get(annotations, Tagged)),
    reveals: having(({ annotations }) => Context.get(annotations, Reveals)),
    issues: having(({ annotations }) => Context.get(annotations, Issues)),
    unscoped: having(({ annotations }) => Context.get(annotations, Unscoped)),
    addressLimit: having(({ annotations }) => Context.getOrUndefined(annotations, AddressLimit)),
    callPolicy: having(({ annotations }) => Context.getOrUndefined(annotations, CallPolicy)),
    filtered: having((endpoint) => policyOf(endpoint).filtered),
    tools: having(({ annotations }) => {
      const tool = Context.getOrUndefined(annotations, Tool)
      if (tool === undefined) return undefined
      const { name, effect, choice, external, requires = [], secret = [], untrusted = [] } = tool
      const lists = Object.entries({ requires, secret, untrusted }).filter(([, names]) => names.length > 0)
      return [
        name,
        effect,
        ...(choice === undefined ? [] : [`${choice.argument}=${choice.value}`]),
        ...(external === true ? ["external"] : []),
        ...lists.map(([of, names]) => `${of}=${names.join()}`),
      ].join(" ")
    }),
  }
}

/** The expected endpoints of each mark. */
export const marks: Readonly<Record<string, string>> = {
  confidential: `
sign_in.requestMagicLink
sign_in.consumeMagicLink
audit.list
audit.export
audit.read
device_login.start
device_login.poll
identities.secrets
proof.createToken
proof.createSignature
agent_sign_ins.create
messages.list
messages.wait
messages.read
messages.patch
messages.attachmentText
threads.list
threads.read
sending.send
sending.drafts
sending.draft
sending.readDraft
sending.replaceDraft
sending.removeDraft
sending.sendDraft
sending.approvals
sending.approval
sending.approve
sending.refuse
events.list
events.listOfIdentity
events.read
connectors.dms
connectors.dm
connectors.notifications
vault.value
overview.read`,
  showsSecret: `
api_keys.create
api_keys.createForIdentity
api_keys.rotate
proof.createToken
proof.createSignature
agent_sign_ins.create
webhooks.create
webhooks.rotate`,
  tagged: `
audit.read
device_confirmation.read
exports.read
api_keys.read
identities.read
proof.settings
agent_sign_ins.read
profiles.read
messages.read
threads.read
sending.approval
events.read
connectors.list
connectors.read
grants.read`,
  reveals: `
exports.archive
identities.secrets
vault.value`,
  issues: `
proof.createToken
proof.createSignature
agent_sign_ins.create`,
  unscoped: `
session.whoami
proof.verify`,
  addressLimit: `
sign_in.requestMagicLink magic_link
device_login.start device
profiles.read profile
public.hit hits
public.contact contact`,
  callPolicy: `
handles.check handle_check
identities.create identity_create`,
  filtered: `
identities.list
org_mail.stopped`,
  tools: `
session.whoami svc_whoami read
handles.check svc_handle_check read
identities.list svc_identity_list read
identities.create svc_identity_create write
identities.read svc_identity_get read
identities.remove svc_identity_delete destructive external
identities.retry svc_identity_retry idempotent_write
cards.read svc_card_get read
cards.patch svc_card_update idempotent_write
proof.createToken svc_token_create write
agent_sign_ins.create svc_sign_in_create idempotent_write external
messages.list svc_email_list read untrusted=messages
messages.wait svc_email_wait read untrusted=messages
messages.read svc_email_get read untrusted=from,reply_to,subject,snippet,attachments,text_reply,text,html,links,headers
messages.patch svc_email_update idempotent_write untrusted=from,reply_to,subject,snippet,attachments
messages.attachmentText svc_attachment_get read untrusted=filename,text
threads.list svc_thread_list read untrusted=threads
threads.read svc_thread_get read untrusted=thread,messages
sending.send svc_email_send write external requires=to
sending.drafts svc_draft_list read
sending.draft svc_email_draft write
sending.readDraft svc_draft_get read
sending.replaceDraft svc_draft_update idempotent_write
sending.removeDraft svc_draft_delete destructive
sending.sendDraft svc_draft_send write external
sending.approvals svc_approval_list read
sending.approval svc_approval_get read
sending.approve svc_approval_decide write decision=approve external
sending.refuse svc_approval_decide write decision=refuse
mail_settings.recipients svc_allowed_recipient_list read
mail_settings.disclosure svc_ai_disclosure_get read
mail_settings.status svc_mail_status read
webhooks.list svc_webhook_list read
webhooks.create svc_webhook_create write
webhooks.patch svc_webhook_update idempotent_write
webhooks.remove svc_webhook_delete destructive
webhooks.test svc_webhook_test write
webhooks.deliveries svc_webhook_deliveries read untrusted=deliveries
events.list svc_event_list read untrusted=events
events.listOfIdentity svc_identity_events read untrusted=events
events.read svc_event_get read untrusted=data
tunnels.read svc_tunnel_get read
connectors.list svc_connector_list read
connectors.posts svc_connector_posts read external
connectors.post svc_connector_post write external
connectors.dm svc_connector_dm write external
connectors.thread svc_connector_thread read external untrusted=posts
connectors.notifications svc_connector_notifications read external untrusted=notifications
vault.list svc_vault_list read
vault.value svc_vault_get read
vault.put svc_vault_set idempotent_write secret=value
vault.remove svc_vault_delete destructive
limits.list svc_limit_list read
usage.read svc_usage_get read`,
}
