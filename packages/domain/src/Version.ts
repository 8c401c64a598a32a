/** The version of the API, the service and the command. */
export const apiVersion = "0.1.0"
