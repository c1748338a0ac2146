// How JavaScript is checked, beside its types (jsconfig.json) and its form (.prettierrc).
import js from "./site/node_modules/@eslint/js/src/index.js";
import globals from "./site/node_modules/globals/index.js";

export default [
  { ignores: ["_build/", ".venv/", "site/node_modules/"] },
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: { "no-unused-vars": ["error", { argsIgnorePattern: "^_" }] },
  },
  { files: ["**/*.mjs"], languageOptions: { globals: globals.node } },
  { files: ["**/host.js"], languageOptions: { sourceType: "script" } },
];
