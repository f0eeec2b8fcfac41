import { defineConfig } from "vite";

// Everything is a file of its own under /assets with its hash in the name: the page's Content-Security-Policy allows nothing inline.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: ["chrome123", "firefox121", "safari17.5"],
    outDir: "dist",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // `npm run dev` beside a server, which refuses the Origin of another page.
  server: {
    proxy: {
      "/v1": {
        target: process.env.CYB_SERVER ?? "http://127.0.0.1:8080",
        changeOrigin: true,
        configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
      },
    },
  },
});
