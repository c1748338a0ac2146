// Lets Playwright drive a Firefox that its own patches are not in, by WebDriver BiDi:
//
//   NODE_OPTIONS=--import=file:///…/tests/firefox_shim.mjs
//   playwright.firefox.launch(channel="moz-firefox", executable_path="/usr/bin/firefox-esr")
//
// Playwright then asks each new window to emulate media features, by a command that Firefox 153
// does not know yet and refuses. In the bundle that Playwright's driver loads, that call asks
// nothing.

import fs from "node:fs";

const session = String.raw`(?:browser\._browserSession|session)`;
const command = String.raw`\.send\(\s*"emulation\.setMediaFeaturesOverride"`;
const asks = new RegExp(String.raw`await this\._${session}${command}`, "g");
const read = fs.readFileSync;
fs.readFileSync = (file, ...rest) => {
  const content = read(file, ...rest);
  if (typeof content !== "string" || !String(file).endsWith("coreBundle.js")) return content;
  return content.replaceAll(asks, "await (async () => {})(0");
};
