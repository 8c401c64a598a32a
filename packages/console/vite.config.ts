/** `/console/` in the address bar, hashed names under `/console/assets/`, no inlined script or style (the CSP forbids both). */
import { defineConfig } from "vite"

export default defineConfig({
  root: import.meta.dirname,
  base: "/console/",
  publicDir: false,
  // Packages of the checkout stand where they are linked to, also where `node_modules` itself is a folder of links.
  resolve: { preserveSymlinks: true, dedupe: ["preact"] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "baseline-widely-available",
    outDir: process.env["CONSOLE_OUT"] ?? "../../node_modules/.cache/console/dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // All of it is 8 kB: a page waits for its script and for no style.
    cssCodeSplit: false,
    // Few files: a browser asks for six at a time over HTTP/1.1, and each is a turn over the network.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "first", tags: ["$initial"], priority: 2 },
            { name: "parts", test: /console\/src\/(?:ui|frame|texts|events\/EventList)/, priority: 1 },
            // A page of mail is its list and what leads around it: seven small files otherwise.
            {
              name: "mail",
              test: /console\/src\/(?:mail\/\w+\.|approvals\/(?:Waiting|texts))/,
              minShareCount: 3,
              priority: 1,
            },
            { name: (id) => /console\/src\/(?!mail|compose)(\w+)\//.exec(id)?.[1] ?? null, minShareCount: 2 },
          ],
        },
      },
    },
    modulePreload: { polyfill: false },
    manifest: "manifest.json",
    sourcemap: false,
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": "http://localhost:8080", "/auth": "http://localhost:8080" } },
})
