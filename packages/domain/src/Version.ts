/** The version of the API, of the service and of its command. */
export const apiVersion = "0.1.0"
