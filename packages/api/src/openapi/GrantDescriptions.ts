/** What the document says of the members of Grants. */
export const ofGrants: Readonly<Record<string, string>> = {
  "Grant.id": "The id of the Grant.",
  client_id: "How the app is called among clients: the address of its document, or what it registered as.",
  client_name: "As the app calls itself; nobody has checked it.",
  redirect_host: "Where the access went: a host, `localhost` for a program of a computer, `cursor:` for an app.",
  "Grant.scopes": "What the app may do: `capability:action` each.",
  "Grant.handles": "The Handles that it may act as; null for the whole account, those to come included.",
  "Grant.networks": "Addresses and CIDR ranges that the app may call from; null for everywhere.",
  "update.networks": "Addresses and CIDR ranges that the app may call from, 20 at most; null for everywhere.",
  "Grant.expires_at": "When it ends by itself.",
  "update.handles": "The Handles that it may act as; null for the whole account.",
  "update.expires_at": "When it is to end, within a year.",
  "update.scopes": "What the app may do: `capability:action` each.",
  "GrantCreatedData.grant_id": "The id of the Grant.",
  "GrantChangedData.grant_id": "The id of the Grant.",
  "GrantRevokedData.grant_id": "The id of the Grant.",
  grants: "Apps that were let in, newest first.",
}
