// Compiles the examples and runs one: `npm run example -- NAME [arguments]`. In your own project they need no such step.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("./", import.meta.url));
const [name, ...rest] = process.argv.slice(2);
if (name === undefined || !existsSync(`${folder}${name}.ts`)) {
  const names = readdirSync(folder).filter((file) => file.endsWith(".ts"));
  process.stderr.write(
    `usage: npm run example -- NAME; examples: ${names.map((file) => file.slice(0, -3)).join(", ")}\n`,
  );
  process.exit(2);
}
const compiler = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace(/package\.json$/, "bin/tsc");
const run = (...args) => {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
};
run(compiler, "-p", `${folder}tsconfig.build.json`, "--noCheck");
run(`${folder}.build/${name}.js`, ...rest);
