// Bundles the page's style, scripts and charting library into report.html, and the library's licences
// into NOTICE.  node build.mjs [FOLDER]: writes there; the default is this folder.
import {build} from "esbuild";
import {createHash} from "node:crypto";
import {existsSync, readFileSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? here;
const read = (file) => readFileSync(join(here, file), "utf8");
const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  target: ["es2022", "chrome111", "firefox113", "safari16.4"],
};

const script = await build({
  ...options,
  entryPoints: ["page.js"],
  format: "iife",
  metafile: true,
  legalComments: "none",
});
const style = await build({...options, entryPoints: ["page.css"]});

// The packages that left something in the bundle, each with its licence.
const folders = new Set(
  Object.entries(Object.values(script.metafile.outputs)[0].inputs)
    .filter(([, {bytesInOutput}]) => bytesInOutput > 0)
    .map(([file]) => file.match(/.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0])
    .filter(Boolean),
);
const licences = [...folders].sort().map((folder) => {
  const {name, version, license} = JSON.parse(read(join(folder, "package.json")));
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].find((file) => existsSync(join(here, folder, file)));
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${read(join(folder, file)).trim()}\n`;
});

const notice =
  "The page that infer --html writes (infer/page/report.html) holds parts of these libraries:\n\n" +
  licences.join("\n" + "-".repeat(78) + "\n\n");
const text = ({outputFiles}) => outputFiles[0].text.trim();
const parts = {LICENCES: notice.replaceAll("--", "- -").trim(), STYLE: text(style), SCRIPT: text(script)};
// No other script runs on the page.
const hash = createHash("sha256").update(`\n${parts.SCRIPT}\n`).digest("base64");
const page = read("page.html")
  .replace(/^(LICENCES|STYLE|SCRIPT)$/gm, (name) => parts[name])
  .replace("SCRIPT_HASH", `sha256-${hash}`);
if (page.split("REPORT_DATA").length !== 2) throw new Error("the page needs exactly one place for its data");
writeFileSync(join(out, "report.html"), page);
writeFileSync(join(out, "NOTICE"), notice);
