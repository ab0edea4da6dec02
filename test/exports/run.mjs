// Installs the programs of this folder if they are missing, and runs exported models in them: npm
// run test:exports [-- MODEL]
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cwd = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("../..", import.meta.url));

if (!existsSync(new URL("node_modules/.package-lock.json", import.meta.url)))
  execFileSync("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"], {
    cwd,
    stdio: "inherit",
  });
const run = (...args) => execFileSync(process.execPath, args, { cwd: root, stdio: "inherit" });
run("scripts/compile.mjs", "test");
run("test/.build/test/exports/main.js", ...process.argv.slice(2));
