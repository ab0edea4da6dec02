// Installs the clients of this folder if they are missing, and runs them against LLAMAGYM_TEST_URL
// with npm's Node 24.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cwd = fileURLToPath(new URL(".", import.meta.url));
const run = (...args) => execFileSync("npm", args, { cwd, stdio: "inherit" });

if (!existsSync(new URL("node_modules/.package-lock.json", import.meta.url)))
  run("ci", "--no-audit", "--no-fund", "--ignore-scripts", "--force");
if (process.argv.includes("--install")) run("exec", "--yes", "--package=node@24", "--", "node", "--version");
else
  run(
    "exec",
    "--offline",
    "--yes",
    "--package=node@24",
    "--",
    "node",
    "--test",
    "vendors.mjs",
    "frameworks.mjs",
    "ai-sdk.mjs",
  );
