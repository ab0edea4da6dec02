#!/usr/bin/env node
import { basename, relative, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { createProject, CreateError } from "./create-project.js";
import { TEMPLATES } from "./templates.js";

const USAGE = `Usage: npm create llamagym [FOLDER] [-- --template NAME]

Creates a project that trains a language model on your machine.

Templates:
${Object.entries(TEMPLATES)
  .map(([name, description]) => `  ${name.padEnd(14)}${description}`)
  .join("\n")}
`;

/** Asks for what the arguments leave out; without a terminal, an error says what to pass. */
async function askFor(missing: "folder" | "template"): Promise<string> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    const example = missing === "folder" ? "npm create llamagym my-agent" : "--template blackjack";
    throw new CreateError(`The ${missing} is missing, such as \`${example}\`.\n\n${USAGE}`);
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    if (missing === "folder") return (await terminal.question("Folder (my-agent): ")).trim() || "my-agent";
    const names = Object.keys(TEMPLATES);
    names.forEach((name, i) => console.log(`  ${i + 1}  ${name.padEnd(14)}${TEMPLATES[name]}`));
    const answer = (await terminal.question("Template (1): ")).trim() || "1";
    return names[Number(answer) - 1] ?? answer;
  } finally {
    terminal.close();
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { template: { type: "string", short: "t" }, help: { type: "boolean", short: "h" } },
    allowPositionals: true,
  });
  if (values.help === true) return console.log(USAGE);
  if (positionals.length > 1)
    throw new CreateError(`One folder is expected, got: ${positionals.join(", ")}.\n\n${USAGE}`);
  const folder = resolve(positionals[0] ?? (await askFor("folder")));
  const template = values.template ?? (await askFor("template"));
  await createProject(folder, template);
  const path = relative(process.cwd(), folder);
  const steps = [...(path === "" ? [] : [`cd ${path.includes(" ") ? `"${path}"` : path}`]), "npm install", "npm start"];
  console.log(`\nCreated ${basename(folder)} from the template ${template}. Next:\n\n  ${steps.join("\n  ")}\n`);
}

await main().catch((error: unknown) => {
  const isArgumentError =
    error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
  if (!(error instanceof CreateError) && !isArgumentError) throw error;
  console.error(isArgumentError ? `${error.message}\n\n${USAGE}` : error.message);
  process.exitCode = 2;
});
