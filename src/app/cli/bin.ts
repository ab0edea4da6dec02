#!/usr/bin/env node
// The command's entry. Older versions of Node.js fail to parse the other modules, so it imports
// them only after its check.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `llamagym requires Node.js 20.19 or newer, but this is ${process.versions.node}. Update Node.js.\n`,
  );
  process.exitCode = 1;
} else {
  await import("./main.js");
}
