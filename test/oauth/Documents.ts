/** A site that serves client metadata documents, shaped like those in the wild. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const shapes: Record<string, (id: string) => unknown> = {
  "claude.json": (client_id) => ({
    client_id,
    client_name: "Claude",
    client_uri: "https://claude.ai",
    redirect_uris: ["https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  }),
  "claude-code.json": (client_id) => ({
    client_id,
    client_name: "Claude Code",
    redirect_uris: ["http://localhost/callback", "http://127.0.0.1/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  }),
  "chatgpt.json": (client_id) => ({
    client_id,
    client_name: "ChatGPT",
    redirect_uris: ["https://chatgpt.com/connector/oauth/abc"],
    token_endpoint_auth_method: "private_key_jwt",
    token_endpoint_auth_methods_supported: ["private_key_jwt", "none"],
    jwks_uri: "https://chatgpt.com/oauth/jwks.json",
  }),
  "vscode.json": (client_id) => ({
    client_id,
    client_name: "Visual Studio Code",
    application_type: "native",
    redirect_uris: [
      "http://127.0.0.1:33418/",
      "http://127.0.0.1/",
      "https://vscode.dev/redirect",
      "http://evil.example/",
    ],
    token_endpoint_auth_method: "none",
  }),
}

export const documents = async () => {
  const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()
  const requests: Array<string> = []
  const server = createServer((request, response) => {
    const name = request.url!.slice(1)
    requests.push(name)
    const answer = answers.get(name)
    if (answer !== undefined) return answer(request, response)
    const shape = shapes[name]
    if (shape === undefined) return void response.writeHead(404).end()
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(shape(url(name))))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = (name: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}`
  return {
    url,
    /** The requested documents. */
    asked: requests,
    /** Replaces the response from now on. */
    answer: (name: string, how: (request: IncomingMessage, response: ServerResponse) => void) =>
      void answers.set(name, how),
    json: (name: string, body: (id: string) => unknown, headers: Record<string, string> = {}) =>
      void answers.set(name, (_, response) =>
        response
          .writeHead(200, { "content-type": "application/json", ...headers })
          .end(JSON.stringify(body(url(name)))),
      ),
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
