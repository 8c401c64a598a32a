/** The expected policy of every endpoint, line by line. */
import { Api } from "@svc/domain/Api"
import type { HttpApiEndpoint } from "effect/http-api"

/** The callers that each endpoint accepts, and where the endpoint names its Identity. A change here changes a promise of the API. */
export const manifest = `
health.report public
sign_in.requestMagicLink public
sign_in.consumeMagicLink public
sign_in.registration public
session.read any
session.revoke session
session.list session
session.revokeOne session
session.revokeAll session
session.whoami any
account.read org
account.acceptTerms session
account.update session
account.remove session
audit.list any realm
audit.usage org
audit.export org
audit.head org
audit.read any realm
device_login.start public
device_login.poll public
device_confirmation.read admin
device_confirmation.approve admin
device_confirmation.deny admin
exports.create any Body
exports.list any realm
exports.read any realm
exports.archive any realm
api_keys.list org
api_keys.create org
api_keys.createForIdentity admin Path
api_keys.rotate org
api_keys.read org
api_keys.revoke org
handles.check org
identities.list org
identities.create org
identities.read any Path
identities.remove org Path
identities.retry org Path
identities.secrets any Path
identities.acknowledge any Path
identities.rotate admin Path
cards.read any Path
cards.patch any Path
proof.listKeys any Path
proof.registerKey any Path
proof.removeKey any Path
proof.rotateKey admin Path
proof.settings any Path
proof.updateSettings admin Path
proof.createToken any Path
proof.createSignature any Path
proof.verify any
agent_sign_ins.create any Path
agent_sign_ins.list any Path
agent_sign_ins.read any Path
agent_sign_ins.approve admin Path
agent_sign_ins.refuse admin Path
agent_sign_ins.end any Path
profiles.read public
messages.list any Path
messages.wait any Path
messages.read any Path
messages.patch any Path
messages.patchMany any Path
messages.removeMany any Path
messages.remove any Path
messages.raw any Path
messages.attachment any Path
messages.attachmentText any Path
threads.list any Path
threads.read any Path
sending.send any Path
sending.drafts any Path
sending.draft any Path
sending.readDraft any Path
sending.replaceDraft any Path
sending.removeDraft any Path
sending.sendDraft any Path
sending.approvals any Path
sending.approval any Path
sending.approve admin Path
sending.refuse admin Path
mail_settings.recipients any Path
mail_settings.allow admin Path
mail_settings.disallow admin Path
mail_settings.lift admin Path
mail_settings.disclosure any Path
mail_settings.setDisclosure admin Path
mail_settings.resetDisclosure admin Path
mail_settings.status any Path
mail_settings.switch any Path reserved
org_mail.stopped org
org_mail.switch org
webhooks.list any Path
webhooks.create any Path
webhooks.read any Path
webhooks.patch any Path
webhooks.remove any Path
webhooks.test any Path
webhooks.rotate any Path
webhooks.deliveries any Path
webhooks.request any Path
webhooks.recover any Path
events.list org
events.stream org
events.listOfIdentity any Path
events.streamOfIdentity any Path
events.read org
events.replay any Resource
tunnels.read any Path
tunnels.patch any Path reserved
connectors.list any Path
connectors.pauseAll any Path reserved
connectors.read any Path
connectors.pause any Path reserved
connectors.connect any Path
connectors.disconnect any Path
connectors.authorize any Path
connectors.callback any
connectors.posts any Path
connectors.post any Path
connectors.dms any Path
connectors.dm any Path
connectors.thread any Path
connectors.notifications any Path
vault.list any Query
vault.value any Query
vault.put any Query
vault.remove any Query
vault.versions any Query
vault.restore any Query
limits.list any Query
usage.read any Query
overview.read session
grants.list org
grants.read org
grants.update session
grants.revoke org
public.hit public
public.contact public
public.clientMetadata public
public.versions public`

export const endpoints = new Map<string, HttpApiEndpoint.Top>(
  Object.entries(Api.groups).flatMap(([group, of]) =>
    Object.entries<HttpApiEndpoint.Top>(of.endpoints).map(
      ([name, endpoint]) => [`${group}.${name}`, endpoint] as const,
    ),
  ),
)
export const rows = manifest
  .trim()
  .split("\n")
  .map((line) => {
    const [id, scope, naming] = line.split(" ") as [string, string, string | undefined]
    return { id, scope, naming, endpoint: endpoints.get(id)! }
  })
