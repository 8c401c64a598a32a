/** The version of the API, the service and the command; scripts/sdk.ts copies it from package.json. */
export const apiVersion = "0.1.0"
