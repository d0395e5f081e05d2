// Builds what the console ships of others' work: the editor as one file, the type, and their licences. Run by `npm install && npm run build`;
// the target folder may be given. The result is kept in the repository, so that neither installing nor running Lapwing needs npm.
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.resolve(process.argv[2] ?? path.join(here, "../src/lapwing/interfaces/console/assets"));
const manifest = JSON.parse(fs.readFileSync(path.join(here, "package.json"), "utf8"));

const built = await esbuild.build({
  entryPoints: [path.join(here, "editor.js")],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  banner: { js: "/* Built from frontend/editor.js; licences of what is in it: licences.txt */" },
  outfile: path.join(target, "editor.js"),
  metafile: true,
});

const fonts = {
  "ibm-plex-sans": ["latin-400-normal", "latin-600-normal"],
  "ibm-plex-mono": ["latin-400-normal"],
};
for (const [family, cuts] of Object.entries(fonts)) {
  for (const cut of cuts) {
    const name = `${family}-${cut}.woff2`;
    fs.copyFileSync(path.join(here, "node_modules/@fontsource", family, "files", name), path.join(target, name));
  }
}

// Every package whose code or type is shipped, and its licence.
const packageOf = (file) => file.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1];
const bundled = new Set(Object.keys(built.metafile.inputs).map(packageOf).filter(Boolean));
const shipped = [...bundled, ...Object.keys(fonts).map((family) => `@fontsource/${family}`)].sort();
const unpinned = shipped.filter((name) => !(name in manifest.dependencies));
if (unpinned.length) throw new Error(`in the bundle and not in package.json: ${unpinned.join(", ")}`);
const texts = shipped.map((name) => {
  const folder = path.join(here, "node_modules", name);
  const version = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")).version;
  if (version !== manifest.dependencies[name]) throw new Error(`${name} is ${version}`);
  const licence = fs.readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  return `${name} ${version}\n${"=".repeat(60)}\n${fs.readFileSync(path.join(folder, licence), "utf8").trim()}\n`;
});
fs.writeFileSync(path.join(target, "licences.txt"), texts.join("\n\n"));

// What was built from what, for whoever has no npm at hand.
const digest = (file) => crypto.createHash("sha256").update(fs.readFileSync(file)).digest("hex");
const digests = (folder, names) => Object.fromEntries(names.map((name) => [name, digest(path.join(folder, name))]));
const isBuilt = (name) => name.endsWith(".woff2") || name === "editor.js" || name === "licences.txt";
const kept = {
  sources: digests(here, ["build.mjs", "editor.js", "package.json"]),
  assets: digests(target, fs.readdirSync(target).filter(isBuilt).sort()),
};
fs.writeFileSync(path.join(here, "built.json"), JSON.stringify(kept, null, 2) + "\n");
