// Prints the identifiers of the JavaScript files that are named on the command line, as JSON:
// { name: ["file:line", ...] }.
import * as fs from "node:fs";
import { createRequire } from "node:module";

const { tokenize } = createRequire(new URL("../site/", import.meta.url))("espree");
const found = new Map();
for (const file of process.argv.slice(2)) {
  const options = { ecmaVersion: "latest", sourceType: "module", loc: true };
  for (const { type, value, loc } of tokenize(fs.readFileSync(file, "utf8"), options)) {
    if (type === "Identifier") {
      found.set(value, [...(found.get(value) ?? []), `${file}:${loc.start.line}`]);
    }
  }
}
console.log(JSON.stringify(Object.fromEntries(found)));
