import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { COMMANDS, type CommandName } from "../src/app/cli/command-list.js";
import { listPages } from "./support/pages.js";

/** Command lines of a page that have options, without comments and what follows a pipe. */
function findCommands(page: string): readonly (readonly [name: CommandName, args: readonly string[]])[] {
  const lines = page.matchAll(/(?<![\w./-])llamagym ([a-z]+) ([^\n`#|&;<>]*)/gu);
  return Array.from(lines, ([, name, rest]) => ({ name, args: rest.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/gu) ?? [] }))
    .filter(({ name, args }) => Object.hasOwn(COMMANDS, name) && args.some((arg) => arg.startsWith("-")))
    .map(({ name, args }) => [name as CommandName, args]);
}

/** Removes quotes and replaces a placeholder, such as $SEED or FILE, with a value of any kind. */
function fillIn(arg: string): string {
  return arg.replaceAll(/["']/gu, "").replace(/^\$?[A-Z]+$/u, "1");
}

it("pages have commands whose options exist and have values that they take", async () => {
  const problems: string[] = [];
  let count = 0;
  for (const page of await listPages())
    for (const [name, args] of findCommands(await readFile(page, "utf8"))) {
      // The options of a reader's algorithm are in its file.
      if (args.includes("./a2c.js")) continue;
      count++;
      const command = await COMMANDS[name].load();
      try {
        await command.help(args.filter((arg) => !arg.startsWith("--help")).map(fillIn));
      } catch (error) {
        // A sentence may name an option without a value.
        if (!/ needs a value: /u.test(String(error)))
          problems.push(`${page}: llamagym ${name} ${args.join(" ")}: ${String(error)}`);
      }
    }
  expect(problems).toEqual([]);
  expect(count).toBeGreaterThan(100);
});
