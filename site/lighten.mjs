// Makes the built pages light: node lighten.mjs SETTINGS, a JSON object that course_site.py writes.
//
//   styles    the style sheets of all pages, in order: joined, rid of rules that no page uses
//   scripts   the pages' scripts, in order: joined; the last is a module and is bundled
//   live      the folder of the widgets' scripts, whose shared parts become one file
//   answers   the folder for the scripts of exercises
//   pages     the folder of the built pages

import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build, transform } from "esbuild";
import { PurgeCSS } from "purgecss";

const { styles, scripts, live, answers, pages } = JSON.parse(process.argv[2]);
const read = (file) => readFileSync(file, "utf8");
const filesIn = (folder, ending) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name));
// Names stay: they cost little once compressed, and say in a reader's error where it was.
const MINIFY = { minifyWhitespace: true, minifySyntax: true, legalComments: "none" };
const minified = async (code, loader) => (await transform(code, { loader, ...MINIFY })).code;

/** The style sheets as one. Addresses in them lead from where it stands. */
function joinedStyles() {
  const there = join(pages, "_static");
  return styles
    .map((file) =>
      read(file).replace(/url\((?!["']?(?:data:|#))["']?([^)"']+)["']?\)/g, (_, path) => {
        return `url(${relative(there, join(dirname(file), path))})`;
      }),
    )
    .join("\n");
}

async function lightStyles() {
  const here = dirname(scripts.at(-1));
  const own = ["progress.js", "search.js"].map((name) => join(here, name));
  own.push(...filesIn(join(here, "answers"), ".js"));
  const [{ css }] = await new PurgeCSS().purge({
    content: [...filesIn(pages, ".html"), ...scripts, ...own],
    css: [{ raw: joinedStyles() }],
    keyframes: true,
    safelist: [/^:/], // a state such as :focus-visible, which PurgeCSS takes for a missing element
    dynamicAttributes: [
      ...["data-theme", "data-mode", "open", "hidden", "popover"],
      ...["aria-expanded", "aria-pressed", "aria-checked", "aria-invalid", "aria-selected"],
      "style", // a formula's colours
    ],
  });
  const light = withAutomaticColours(await minified(css, "css"));
  writeFileSync(join(pages, "_static", "site.css"), light);
}

/** Minified styles with the theme "auto", which a page has until its script sets "light" or "dark":
 * without JavaScript for good. It has the system's colours. */
function withAutomaticColours(css) {
  const dark = /[^{};]*\[data-theme=dark\][^{}]*\{[^{}]*\}/g;
  return css
    .replace(dark, (rule) => {
      const own = rule.replaceAll("[data-theme=dark]", "[data-theme=auto]");
      return `${rule}@media screen and (prefers-color-scheme:dark){${own}}`;
    })
    .replaceAll("[data-theme=light]", ":is([data-theme=light],[data-theme=auto])");
}

/** A theme's script without its look at everything that may scroll, which course.js does better:
 * measured are only what is drawn, and not again whenever a widget answers. To measure a section
 * that is far from the screen draws it, so on a phone that look took longer than all else. */
function withoutMeasuring(file, code) {
  if (!file.endsWith("pydata-sphinx-theme.js")) return code;
  const everything = /document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\)/g;
  if (code.match(everything)?.length !== 1) {
    throw new Error(`${file} no longer measures what scrolls: remove withoutMeasuring`);
  }
  return code.replace(everything, "[]");
}

async function lightScripts() {
  const [own, ...others] = scripts.toReversed();
  const bundled = await build({
    entryPoints: [own],
    bundle: true,
    external: ["./search.js"],
    minify: true,
    write: false,
    format: "iife",
  });
  const found = join(pages, "_static", "search.js"); // which a page asks for where it is needed
  const search = join(dirname(own), "search.js");
  await build({ entryPoints: [search], outfile: found, bundle: true, minify: true, format: "esm" });
  const parts = await Promise.all(
    others.toReversed().map((file) => minified(withoutMeasuring(file, read(file)), "js")),
  );
  // An error in one part is told, and leaves the others as they are.
  const all = [...parts, bundled.outputFiles[0].text].map(
    (part) => `try {\n${part}\n} catch (error) {\n  reportError(error);\n}`,
  );
  writeFileSync(join(pages, "_static", "site.js"), all.join("\n"));
}

const WORKERS = ["trainer_worker.js", "llama_worker.js"]; // have no page, so no parts of views
const APART = ["host.js", "engine.js", ...WORKERS]; // not parts of views
// Parts that few views load.
const OF_FEW = ["arcs.js", "beams.js", "card.js", "models.js", "texts.js", "vectors.js"];
const OF_MODEL = /\/(gguf|matrices|llama\w*)\.js$/; // parts of its worker alone
const SHARED = "live/ui/parts.js"; // where all shared parts go

/** One request for what views share, instead of one for each part. */
async function lightWidgets() {
  const files = filesIn(live, ".js");
  const isPart = (file) =>
    /^live\/(ui|page)\//.test(relative(live, file)) &&
    ![...APART, ...OF_FEW].some((one) => file.endsWith(`/${one}`));
  const parts = files.filter((file) => isPart(file) && !OF_MODEL.test(file));
  const { metafile, outputFiles } = await build({
    stdin: {
      contents: parts.map((file) => `export * from ${JSON.stringify(file)};`).join("\n"),
      resolveDir: live,
    },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    metafile: true,
    outfile: "shared.js",
  });
  const workers = await build({
    entryPoints: WORKERS.map((name) => join(live, "live", "page", name)),
    outdir: join(live, "live", "page"),
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
  });
  const [{ exports }] = Object.values(metafile.outputs);
  for (const file of files) {
    if (isPart(file)) rmSync(file);
    else if (!WORKERS.some((name) => file.endsWith(name))) {
      const name = relative(live, file);
      writeFileSync(file, await minified(fromShared(name, read(file), exports), "js"));
    }
  }
  for (const { path, text } of workers.outputFiles) writeFileSync(path, text);
  const bare = outputFiles[0].text.replace(/\/\*.*?\*\/|(?<=\n) +/gs, ""); // of the styles in it
  writeFileSync(join(live, SHARED), bare);
}

/** A view with its imports led to the one file of shared parts, which has to have each of them. */
function fromShared(name, code, exports) {
  const imports =
    /import\s*\{([^}]*)\}\s*from\s*"(?:\.\.?\/)+(?:live\/)?(?:(?:ui|page)\/)?(\w+\.js)"/g;
  const shared = relative(dirname(name), SHARED).replace(/^(?!\.)/, "./");
  return code.replace(imports, (found, names, file) => {
    if (OF_FEW.includes(file)) return found;
    for (const one of names.split(",")) {
      const wanted = one.split(" as ")[0].trim();
      if (wanted && !exports.includes(wanted)) {
        throw new Error(`${name} imports ${wanted}, which two parts export, or none`);
      }
    }
    return `import {${names}} from "${shared}"`;
  });
}

/** What only some readers need, such as the editor, becomes a file of its own. */
async function lightAnswers() {
  const here = join(dirname(scripts.at(-1)), "answers");
  await build({
    entryPoints: ["answers.js", "python_worker.js"].map((name) => join(here, name)),
    outdir: answers,
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    external: ["node:*", "ws"], // of Pyodide, which runs in Node as well
  });
}

await lightWidgets();
await Promise.all([lightStyles(), lightScripts(), lightAnswers()]);
