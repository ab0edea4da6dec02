// Compiles the package into dist/ and the recipes into recipes/.build/recipes, where `../../src/...` is the package in dist/.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const build = fileURLToPath(new URL(".build/", import.meta.url));
const compiler = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace(/package\.json$/, "bin/tsc");

/** Types are checked by `npm run check`; here only JavaScript is wanted. */
function compile(project) {
  const { status } = spawnSync(process.execPath, [compiler, "-p", project, "--noCheck"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) {
    process.stderr.write(`compiling ${project} failed\n`);
    process.exit(status ?? 1);
  }
}

compile("tsconfig.build.json");
rmSync(build, { recursive: true, force: true });
compile("recipes/tsconfig.build.json");
mkdirSync(build, { recursive: true });
symlinkSync(`${root}dist`, `${build}src`, "junction");
