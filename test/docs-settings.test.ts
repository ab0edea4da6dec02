import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { renderSettingsMarkdown, buildSettingsTables } from "./support/settings-table.js";

const page = fileURLToPath(new URL("../docs/training.md", import.meta.url));
const SETTINGS_BLOCK = /(?<=<!-- settings -->\n)[\s\S]*(?=<!-- \/settings -->)/;

it("docs/training.md lists every setting with its default and source (UPDATE_DOCS=1 writes them)", async () => {
  const update = (text: string) => text.replace(SETTINGS_BLOCK, `\n${renderSettingsMarkdown()}\n`);
  if (process.env.UPDATE_DOCS === "1") await writeFile(page, update(await readFile(page, "utf8")));
  const text = await readFile(page, "utf8");
  const lines = SETTINGS_BLOCK.exec(text)?.[0].split("\n") ?? [];
  const cells = (line: string) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim());
  const rows = lines.filter((line) => line.startsWith("|") && !/^\|[\s|-]*$/.test(line)).map(cells);
  expect(rows).toEqual([...buildSettingsTables().values()].flat());
  const titles = lines.filter((line) => line.startsWith("#")).map((line) => line.replace(/^#+ /, ""));
  expect(titles).toEqual([...buildSettingsTables().keys()]);
});
