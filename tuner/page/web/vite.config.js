import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

// Puts the script and the style into the page, so that it is one file that loads nothing, and lets
// the browser run no other script than this one.
function one_file() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = bundle["index.html"];
      let script = "";
      let style = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") script += part.code;
        else if (name.endsWith(".css")) style += part.source;
        if (part !== page) delete bundle[name];
      }
      // "</script" and "<!--" may occur in strings and regular expressions only.
      script = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "\\x3c!--").trim();
      const hash = createHash("sha256").update(script).digest("base64");
      const policy =
        `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; ` +
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'";
      page.source = String(page.source)
        .replace(/\s*<script[^>]*type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link[^>]*rel="stylesheet"[^>]*>/, "")
        .replace("<!-- policy -->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("<!-- style -->", () => `<style>${style.trim()}</style>`)
        .replace("<!-- script -->", () => `<script type="module">${script}</script>`)
        .replace("<!-- licences -->", () => `<script type="text/plain" id="licences">${licences()}</script>`);
    },
    writeBundle() {
      writeFileSync("dist/licences.txt", licences());
    },
  };
}

/** The licences of the libraries in the page. */
function licences() {
  return ["echarts", "zrender", "tslib"].map((name) => {
    const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
    const file = name === "tslib" ? "LICENSE.txt" : "LICENSE";
    const notice = name === "echarts" ? readFileSync(`node_modules/${name}/NOTICE`, "utf8") + "\n" : "";
    return `${name} ${version} (${license})\n\n${notice}${readFileSync(`node_modules/${name}/${file}`, "utf8").trim()}\n`;
  }).join("\n" + "-".repeat(80) + "\n\n");
}

export default {
  base: "./",
  build: {
    target: "es2022",
    assetsInlineLimit: 1 << 20,
    cssCodeSplit: false,
    modulePreload: false,
    chunkSizeWarningLimit: 2000,
  },
  plugins: [one_file()],
};
