/**
 * The build: served below `/console/`, with hashed asset names and no inlined script or style, which the content security
 * policy forbids.
 */
import { defineConfig } from "vite"

export default defineConfig({
  root: import.meta.dirname,
  base: "/console/",
  publicDir: false,
  // Resolves packages through symbolic links, also if `node_modules` itself contains links.
  resolve: { preserveSymlinks: true, dedupe: ["preact"] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "baseline-widely-available",
    outDir: process.env["CONSOLE_OUT"] ?? "../../node_modules/.cache/console/dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // One style sheet of 8 kB, so that no page waits for a second one.
    cssCodeSplit: false,
    // Few chunks, because HTTP/1.1 browsers load six files at a time.
    rolldownOptions: {
      output: {
        // The first script lists the names of all others, so they are short.
        chunkFileNames: "assets/[hash].js",
        codeSplitting: {
          groups: [
            { name: "first", tags: ["$initial"], priority: 2 },
            {
              name: "parts",
              test: /console\/src\/(?:ui|frame|charts\/LazyUsage)/,
              priority: 1,
            },
            // The sentences of Events are half of the parts, and the mail pages show none.
            {
              name: "events",
              test: /console\/src\/(?:texts\/events|events\/EventList)|domain\/src\/events/,
              priority: 1,
            },
            // The mail pages share one chunk; there would be seven small ones otherwise.
            {
              name: "mail",
              test: /console\/src\/(?:mail\/(?!MailList|MailRows|Verdict|texts)\w+\.ts|approvals\/texts)/,
              minShareCount: 3,
              priority: 1,
            },
            { name: "rows", test: /console\/src\/mail\/(?:MailRows|Verdict|texts)/, priority: 1 },
            { name: "list", test: /console\/src\/mail\/(?:MailList|selection)/, minShareCount: 2, priority: 1 },
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
