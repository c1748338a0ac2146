// “Copy as torch”: the code that computes what is shown, for the reader's own notebook.

import { h, setText } from "./dom.js";

const THANKS = 3000; // ms for which the button confirms that the code was copied

const COPY = "Copy as torch";

/**
 * A button that copies what `code()` is then. Where the browser refuses, the code is shown below
 * it, selected, until it is out of date, as `follow()` finds. `of` says what the code computes, for
 * those who do not see where the button stands.
 */
export function copyAsTorch(code, of = "") {
  let soon = 0;
  const label = h("span", COPY);
  const more = of ? [" ", h("span.spoken-only", `(${of})`)] : [];
  const button = h("button.copy", { click: () => copy() }, label, ...more);
  const status = h("span.spoken-only", { role: "status" });
  const box = h("textarea.snippet", {
    readonly: true,
    rows: "6",
    spellcheck: "false",
    "aria-label": "the code",
  });
  const announce = (seen, spoken) => {
    clearTimeout(soon);
    setText(label, seen);
    setText(status, spoken);
    soon = setTimeout(() => {
      setText(label, COPY);
      setText(status, "");
    }, THANKS);
  };
  const copy = async () => {
    const text = code();
    try {
      await navigator.clipboard.writeText(text);
      box.remove();
      announce("Copied", "The code is in the clipboard.");
    } catch {
      // no permission, or not a secure page: let the reader copy it
      box.value = text;
      element.append(box);
      box.focus();
      box.select();
      announce("Selected", "Copy what is selected.");
    }
  };
  const element = h("div.copying", button, status);
  return {
    element,
    button,
    follow() {
      if (box.isConnected && box.value !== code()) box.remove();
    },
  };
}
copyAsTorch.style = `
.copying { display: flex; flex-wrap: wrap; gap: 4px 0; align-items: center; position: relative; }
.copy { min-width: 7.5rem; }
.snippet { flex: 1 0 100%; width: 100%; resize: vertical; padding: 6px 8px; color: var(--text);
  font: var(--size-small)/1.5 var(--mono); white-space: pre; overflow: auto;
  background: var(--ground); border: 1px solid var(--accent); border-radius: 6px; }
`;
