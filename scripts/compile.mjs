// Compiles the package into dist/, and a folder beside it into FOLDER/.build, where `../src/...` is
// the package in dist/. usage: node scripts/compile.mjs FOLDER [--keep-dist] --keep-dist leaves
// dist/ as it is
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = process.argv[2];
const build = join(root, folder, ".build");
const compiler = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace(/package\.json$/, "bin/tsc");

/** Types are checked by `npm run check`; here only JavaScript is wanted. */
function compile(project) {
  // Standard output is the program's own (--json), so the compiler's goes to standard error.
  const { status } = spawnSync(process.execPath, [compiler, "-p", project, "--noCheck"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) {
    process.stderr.write(`compiling ${project} failed\n`);
    process.exit(status ?? 1);
  }
}

if (!process.argv.includes("--keep-dist")) compile("tsconfig.build.json");
rmSync(build, { recursive: true, force: true });
compile(`${folder}/tsconfig.build.json`);
mkdirSync(build, { recursive: true });
symlinkSync(join(root, "dist"), join(build, "src"), "junction");
