// Compiles the examples and runs one: `npm run example -- NAME [--episodes N] [--model MODEL] [--device DEVICE]`.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("./", import.meta.url));
const [name, ...rest] = process.argv.slice(2);
const path = `${folder}${name}.ts`;
const isProgram = (file) => /parseOptions|parseArgs/.test(readFileSync(file, "utf8"));
if (name === undefined || !existsSync(path) || !isProgram(path)) {
  const sources = readdirSync(folder).filter((file) => file.endsWith(".ts") && file !== "options.ts");
  const programs = sources.filter((file) => isProgram(`${folder}${file}`)).map((file) => file.slice(0, -3));
  process.stderr.write(
    `usage: npm run example -- NAME [--episodes N] [--model MODEL] [--device DEVICE]\nNAME: ${programs.join(", ")}\n`,
  );
  if (name !== undefined && existsSync(path))
    process.stderr.write(`${name}.ts is a module for the llamagym command; its first lines show how to use it.\n`);
  process.exit(2);
}
const compiler = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace(/package\.json$/, "bin/tsc");
const run = (...args) => {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
};
run(compiler, "-p", folder, "--noCheck");
run(`${folder}.build/${name}.js`, ...rest);
