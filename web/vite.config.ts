// One html file: script and style inlined, the script pinned by its hash in the page's own security policy.
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** Replaces SCRIPT_HASHES in the policy by the hashes of the inline scripts that may run: nothing else will. */
function pinScripts(): Plugin {
  return {
    name: "pin-scripts",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
          const html = String(file.source);
          const hashes = [...html.matchAll(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g)].map(
            ([, code]) => `'sha256-${createHash("sha256").update(code ?? "").digest("base64")}'`,
          );
          file.source = html.replace("SCRIPT_HASHES", hashes.join(" "));
        }
      },
    },
  };
}

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), pinScripts()],
  build: { target: "es2022", modulePreload: false, cssMinify: true, reportCompressedSize: false, outDir: process.env.PAGE_OUT ?? "dist" },
});
