// Compiles the examples and runs one: `npm run example -- NAME [--episodes N] [--model MODEL]
// [--device DEVICE]`. Those in agents/ need clients from npm, installed by `node
// test/clients/run.mjs --install`, and its newer Node.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("./", import.meta.url));
const folders = [root, `${root}agents/`];
const [name, ...rest] = process.argv.slice(2);
const folder = folders.find((each) => existsSync(`${each}${name}.ts`));
const isProgram = (file) => /parseOptions\(|parseArgs\(|trainAgent\(/.test(readFileSync(file, "utf8"));
const helpers = ["options.ts", "train-agent.ts"];
if (folder === undefined || helpers.includes(`${name}.ts`) || !isProgram(`${folder}${name}.ts`)) {
  const programs = folders.flatMap((each) => {
    const sources = readdirSync(each).filter((file) => file.endsWith(".ts") && !helpers.includes(file));
    return sources.filter((file) => isProgram(`${each}${file}`)).map((file) => file.slice(0, -3));
  });
  process.stderr.write(
    `usage: npm run example -- NAME [--episodes N] [--model MODEL] [--device DEVICE]\nNAME: ${programs.join(", ")}\n`,
  );
  if (folder !== undefined)
    process.stderr.write(`${name}.ts is a module for the llamagym command; its first lines show how to use it.\n`);
  process.exit(2);
}
const compiler = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace(/package\.json$/, "bin/tsc");
const run = (command, ...args) => {
  const { status } = spawnSync(command, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
};
const hasClients = folder !== root;
if (hasClients) {
  const clients = `${root}../test/clients`;
  if (!existsSync(`${clients}/node_modules/.package-lock.json`))
    run(process.execPath, `${clients}/run.mjs`, "--install");
  if (!existsSync(`${folder}node_modules`)) symlinkSync("../../test/clients/node_modules", `${folder}node_modules`);
}
run(process.execPath, compiler, "-p", folder, ...(hasClients ? [] : ["--noCheck"]));
const node = hasClients ? ["npm", "exec", "--offline", "--yes", "--package=node@24", "--", "node"] : [process.execPath];
run(...node, `${folder}.build/${name}.js`, ...rest);
