import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { listPages } from "./support/pages.js";

const root = fileURLToPath(new URL("..", import.meta.url));

/** GitHub's anchor of a heading. */
const toAnchor = (heading: string) =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-");

it("every link between pages leads to a file and a heading that exist", async () => {
  const broken: string[] = [];
  let numAnchors = 0;
  for (const page of [...(await listPages()), "ARCHITECTURE.md", "SECURITY.md", "bench/README.md"]) {
    const text = (await readFile(join(root, page), "utf8")).replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, "");
    for (const [, link] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      const [file, anchor] = link.split("#");
      const target = normalize(file === "" ? page : join(dirname(page), file));
      if (!existsSync(join(root, target))) broken.push(`${page}: ${link}`);
      else if (anchor !== undefined && target.endsWith(".md")) {
        numAnchors++;
        const headings = (await readFile(join(root, target), "utf8")).matchAll(/^#+ (.*)$/gm);
        if (!Array.from(headings, ([, heading]) => toAnchor(heading)).includes(anchor)) broken.push(`${page}: ${link}`);
      }
    }
  }
  expect(broken).toEqual([]);
  expect(numAnchors).toBeGreaterThan(50);
});
