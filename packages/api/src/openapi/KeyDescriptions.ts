/** What the document says of the members of keys: what they may do, until when, from where. */
export const ofKeys: Readonly<Record<string, string>> = {
  scopes: "What the key may do: `capability:action` each, or `*` for everything.",
  "CallerView.scopes": "What it may do: `capability:action` each, or `*` for everything.",
  networks: "The addresses and CIDR ranges it may be used from; null for everywhere.",
  "create.networks": "Addresses and CIDR ranges it may be used from, 20 at most; those of its maker where left out.",
  "createForIdentity.networks":
    "Addresses and CIDR ranges it may be used from, 20 at most; those of its maker where left out.",
  "create.scopes": "What it may do; what its maker may do where left out.",
  "createForIdentity.scopes": "What it may do; what its maker may do where left out.",
  "approve.scopes": "What is left of what the device asked for; all of it where left out.",
  "DeviceView.scopes": "What the key would do: what the device asked for, or `*` for everything.",
  expires_in_days: "How many days it lasts, instead of `expires_at`.",
  "DeviceView.expires_in_days": "How many days the key would last; null for ever.",
  "create.expires_at": "When it ends; the end of its maker where left out.",
  "createForIdentity.expires_at": "When it ends; the end of its maker where left out.",
  "ApiKey.expires_at": "When it ends by itself; null for never.",
  "CallerView.expires_at": "When a key or a grant ends by itself; null for never, and for a session.",
  last_used_address: "The address it was last used from; null for never.",
  replaced_by: "The id of the key that took its place; null while there is none.",
  overlap_seconds: "How long both keys work; a day where left out, a week at most.",
  handles: "The Identities it may act on; null for all of the Org, those to come included.",
  grant_id: "Of an app's grant: its id; null otherwise.",
}
